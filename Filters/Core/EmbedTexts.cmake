# cmake -DOUTPUT=FILE.cxx -DTEXTS=FILE|... -P EmbedTexts.cmake: a source that holds files of Weights/Architectures.
string(REPLACE "|" ";" files "${TEXTS}")
set(items "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  string(APPEND items "    { \"${name}\", R\"TEXT(${text})TEXT\" },\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"Weights/Internal/ArchitectureTexts.h\"

namespace atlas
{

const std::vector<ArchitectureText>& ArchitectureTexts()
{
  static const std::vector<ArchitectureText> texts = {
${items}  };
  return texts;
}

}
")
