# cmake -P unite.cmake OUTPUT source... writes a source that includes others, each in a namespace of
# its own, so that names of one do not meet those of another. All that they include comes first: in
# the namespaces, include guards leave nothing of it. So sources include without conditions.
set(first 4) # cmake -P unite.cmake OUTPUT
math(EXPR last "${CMAKE_ARGC} - 1")
set(headers "")
set(text "")
foreach(index RANGE ${first} ${last})
  set(source "${CMAKE_ARGV${index}}")
  file(STRINGS "${source}" conditions REGEX "^#(define|undef|ifn?def) ")
  if(conditions)
    message(FATAL_ERROR
      "${source}: expected no macro that includes could depend on, found ${conditions}.")
  endif()
  file(STRINGS "${source}" includes REGEX "^#include ")
  list(APPEND headers ${includes})
  cmake_path(GET source STEM name)
  string(APPEND text "namespace ${name}Source\n{\n#include \"${source}\"\n}\n")
endforeach()
list(REMOVE_DUPLICATES headers)
list(JOIN headers "\n" headers)
file(WRITE "${CMAKE_ARGV3}" "${headers}\n\nnamespace\n{\n${text}}\n")
