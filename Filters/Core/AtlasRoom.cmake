# atlas_add_room(NAME UNITS unit... [HEADERS header...] [INTERNAL unit...] [DEPENDS room...]
#   [EXTERNALS library...] [PUBLIC_EXTERNALS library...]): the folder NAME of Core.
#
# A unit is NAME/UNIT.h and .cxx, a header only NAME/HEADER.h. Internal units are in NAME/Internal,
# which nothing outside the room can include. A room sees the headers of the rooms that it DEPENDS
# on, of theirs in turn, and of its own EXTERNALS. Externals that appear in the room's headers are PUBLIC_EXTERNALS.
function(atlas_add_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" ""
    "UNITS;HEADERS;INTERNAL;DEPENDS;EXTERNALS;PUBLIC_EXTERNALS")
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}/${name}")
  list(TRANSFORM arg_UNITS REPLACE "(.+)" "${folder}/\\1.cxx")
  list(TRANSFORM arg_INTERNAL REPLACE "(.+)" "${folder}/Internal/\\1.cxx")
  set(room AttentionAtlasCore${name})
  add_library(${room} OBJECT ${arg_UNITS} ${arg_INTERNAL})
  target_include_directories(${room} PUBLIC "${folder}" PRIVATE "${folder}/Internal")
  target_compile_options(${room} PRIVATE ${ATLAS_COMPILE_OPTIONS} -Wpedantic)
  list(TRANSFORM arg_DEPENDS PREPEND AttentionAtlasCore)
  target_link_libraries(${room} PUBLIC ${arg_DEPENDS} ${arg_PUBLIC_EXTERNALS}
    PRIVATE ${arg_EXTERNALS})
  set_target_properties(${room} PROPERTIES ${ATLAS_UNITED})
  set_property(GLOBAL APPEND PROPERTY ATLAS_ROOMS ${name})
  # The library contains the objects and links their dependencies; its users see the headers.
  target_sources(AttentionAtlasCore PRIVATE $<TARGET_OBJECTS:${room}>)
  target_include_directories(AttentionAtlasCore INTERFACE "${folder}")
  target_link_libraries(AttentionAtlasCore PRIVATE ${arg_PUBLIC_EXTERNALS} ${arg_EXTERNALS})
endfunction()
