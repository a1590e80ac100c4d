"""Passages of the King James Bible (1611, public domain), which the language models are run on."""

PASSAGES = (
    "In the beginning God created the heaven and the earth. And the earth was without form, and void; and darkness "
    "was upon the face of the deep. And the Spirit of God moved upon the face of the waters. And God said, Let there "
    "be light: and there was light.",
    "And God saw the light, that it was good: and God divided the light from the darkness. And God called the light "
    "Day, and the darkness he called Night. And the evening and the morning were the first day.",
    "The LORD is my shepherd; I shall not want. He maketh me to lie down in green pastures: he leadeth me beside the "
    "still waters. He restoreth my soul: he leadeth me in the paths of righteousness for his name's sake.",
    "Yea, though I walk through the valley of the shadow of death, I will fear no evil: for thou art with me; thy rod "
    "and thy staff they comfort me. Thou preparest a table before me in the presence of mine enemies.",
    "To every thing there is a season, and a time to every purpose under the heaven: A time to be born, and a time to "
    "die; a time to plant, and a time to pluck up that which is planted; A time to kill, and a time to heal.",
    "Vanity of vanities, saith the Preacher, vanity of vanities; all is vanity. What profit hath a man of all his "
    "labour which he taketh under the sun? One generation passeth away, and another generation cometh.",
    "In the beginning was the Word, and the Word was with God, and the Word was God. The same was in the beginning "
    "with God. All things were made by him; and without him was not any thing made that was made.",
    "Blessed are the poor in spirit: for theirs is the kingdom of heaven. Blessed are they that mourn: for they shall "
    "be comforted. Blessed are the meek: for they shall inherit the earth.",
    "Though I speak with the tongues of men and of angels, and have not charity, I am become as sounding brass, or a "
    "tinkling cymbal. And though I have the gift of prophecy, and understand all mysteries, and all knowledge.",
    "And it came to pass in those days, that there went out a decree from Caesar Augustus, that all the world should "
    "be taxed. And Joseph also went up from Galilee, out of the city of Nazareth, into Judaea.",
    "And Ruth said, Intreat me not to leave thee, or to return from following after thee: for whither thou goest, I "
    "will go; and where thou lodgest, I will lodge: thy people shall be my people, and thy God my God.",
    "And David said to Saul, Let no man's heart fail because of him; thy servant will go and fight with this "
    "Philistine. And Saul said to David, Thou art not able to go against this Philistine to fight with him.",
    "There was a man in the land of Uz, whose name was Job; and that man was perfect and upright, and one that feared "
    "God, and eschewed evil. And there were born unto him seven sons and three daughters.",
    "The heavens declare the glory of God; and the firmament sheweth his handywork. Day unto day uttereth speech, and "
    "night unto night sheweth knowledge. There is no speech nor language, where their voice is not heard.",
    "And the LORD spake unto Moses, saying, Speak unto the children of Israel, and say unto them, I am the LORD your "
    "God. After the doings of the land of Egypt, wherein ye dwelt, shall ye not do.",
    "A certain man had two sons: And the younger of them said to his father, Father, give me the portion of goods "
    "that falleth to me. And he divided unto them his living. And not many days after the younger son gathered all "
    "together.",
)
