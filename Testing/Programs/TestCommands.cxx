// attention-atlas, run as its users run it: which commands there are.

#include "CommandTest.h"

using namespace atlas::test;
using namespace testing;

namespace
{

TEST(Commands, HelpListsThem)
{
  for (const char* help : { "--help", "-h", "help" })
  {
    const ProgramResult result = RunProgram(help);
    EXPECT_EQ(result.code, 0) << help;
    EXPECT_THAT(result.errors, IsEmpty()) << help;
    for (const char* command : { "view", "figures", "web", "attribution", "scene", "record",
           "corpus", "learn", "map", "findings" })
    {
      EXPECT_THAT(result.output, HasSubstr(std::string("\n  ") + command + " ")) << help;
    }
    EXPECT_THAT(result.output, HasSubstr("Examples:"));
  }
}

TEST(Commands, WithoutOneHelpIsAnError)
{
  const ProgramResult result = RunProgram("");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.output, IsEmpty());
  EXPECT_THAT(result.errors, HasSubstr("Commands:"));
}

TEST(Commands, TellTheVersion)
{
  const ProgramResult result = RunProgram("--version");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.output, "attention-atlas " ATLAS_VERSION "\n");
}

TEST(Commands, AMistypedOneIsNamed)
{
  for (const auto& [typed, meant] : { std::pair("figure", "figures"), std::pair("recrod", "record"),
         std::pair("Learn", "learn"), std::pair("wbe", "web") })
  {
    const ProgramResult result = RunProgram(typed);
    EXPECT_EQ(result.code, 1) << typed;
    EXPECT_EQ(result.errors, std::string("attention-atlas: unknown command '") + typed +
                               "'. Did you mean '" + meant +
                               "'? attention-atlas --help lists all.\n");
    EXPECT_THAT(result.output, IsEmpty()) << typed;
  }
  const ProgramResult other = RunProgram("photosynthesis");
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.errors, Not(HasSubstr("Did you mean")));
}

TEST(Commands, FilesAreMissedBeforeParaViewStarts)
{
  for (const std::string command : { "figures", "web", "scene", "article" })
  {
    const ProgramResult result = RunProgram(command + " none.safetensors -o page");
    EXPECT_EQ(result.code, 1) << command;
    EXPECT_EQ(result.errors, "attention-atlas " + command + ": none.safetensors: no such file.\n");
  }
}

TEST(Commands, WrongWordsAreNamedWithTheirOption)
{
  for (const auto& [typed, message] : {
         std::pair("record m a --max-length 0x -o r.safetensors",
           "record: --max-length: expected a number, found '0x'."),
         std::pair("record m a --max-length=0x -o r.safetensors",
           "record: --max-length: expected a number, found '0x'."),
         std::pair("record m '- a' -o r.safetensors",
           "has incorrect syntax; what begins with a dash and is no option follows --."),
         std::pair("learn --task Chess -o run", "learn: --task: expected one of RepeatedTokens"),
         std::pair("learn --task RepeatedTokens --heads 0 -o run", "learn: --heads: expected"),
         std::pair("learn --task Text -o run", "learn: --text: expected a text file, found none."),
       })
  {
    const ProgramResult result = RunProgram(typed);
    EXPECT_EQ(result.code, 1) << typed;
    EXPECT_THAT(result.errors, HasSubstr(message)) << typed;
    EXPECT_EQ(atlas::test::ErrorLines(result.errors), 1) << typed;
  }
}

TEST(Commands, HelpOfEachHasExamples)
{
  for (const std::string command : { "view", "record", "corpus", "learn", "map" })
  {
    const ProgramResult result = RunProgram(command + " --help");
    EXPECT_EQ(result.code, 0) << command;
    EXPECT_THAT(result.errors, IsEmpty()) << command;
    EXPECT_THAT(result.output, HasSubstr("Usage:\n  attention-atlas " + command)) << command;
    EXPECT_THAT(result.output, HasSubstr("\nExamples:\n  attention-atlas " + command)) << command;
  }
}

TEST(Commands, ViewSaysWhatIsMissing)
{
  ::unsetenv("WAYLAND_DISPLAY");
  ::setenv("DISPLAY", "", 1);
  const ProgramResult hidden = RunProgram("view");
  EXPECT_EQ(hidden.code, 1);
  EXPECT_THAT(hidden.errors, HasSubstr("a window needs a display"));
  ::setenv("DISPLAY", ":99", 1);
  const ProgramResult missing = RunProgram("view none.pvsm");
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.errors,
    "attention-atlas view: none.pvsm: expected a state of ParaView, found no file.\n");
  EXPECT_EQ(RunProgram("view none.safetensors").errors,
    "attention-atlas view: none.safetensors: expected a file to show, found no file.\n");
  const ProgramResult many = RunProgram("view one.pvsm two.pvsm");
  EXPECT_EQ(many.code, 1);
  EXPECT_EQ(many.errors, "attention-atlas view: expected one file, found more; options of ParaView "
                         "follow --.\n");
}

TEST(Commands, ViewSaysThatItOpensAFile)
{
  ::setenv("DISPLAY", ":99", 1);
  ::setenv("QT_QPA_PLATFORM", "none", 1); // which ends ParaView at once
  EXPECT_THAT(RunProgram("view " ATLAS_PROGRAM).errors,
    StartsWith("Opening " ATLAS_PROGRAM " in ParaView ...\n"));
}

}
