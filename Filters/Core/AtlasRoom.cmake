# atlas_add_room(NAME [DEPENDS room...] [EXTERNALS library...] [PUBLIC_EXTERNALS library...]): the folder NAME
#   of Core.
#
# All of its sources are compiled. A header of another room is included by its folder ("Weights/FloatValues.h"), and only
# of rooms that this one DEPENDS on; those in NAME/Internal are the room's own (Testing/Lint/rooms.py). Externals that
# appear in the room's headers are PUBLIC_EXTERNALS.
function(atlas_add_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" ""
    "DEPENDS;EXTERNALS;PUBLIC_EXTERNALS")
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}/${name}")
  file(GLOB units CONFIGURE_DEPENDS "${folder}/*.cxx")
  file(GLOB internal CONFIGURE_DEPENDS "${folder}/Internal/*.cxx")
  set(room AttentionAtlasCore${name})
  add_library(${room} OBJECT ${units} ${internal})
  target_include_directories(${room} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_options(${room} PRIVATE ${ATLAS_COMPILE_OPTIONS} -Wpedantic)
  list(TRANSFORM arg_DEPENDS PREPEND AttentionAtlasCore)
  target_link_libraries(${room} PUBLIC ${arg_DEPENDS} ${arg_PUBLIC_EXTERNALS}
    PRIVATE ${arg_EXTERNALS})
  set_target_properties(${room} PROPERTIES ${ATLAS_UNITED})
  set_property(GLOBAL APPEND PROPERTY ATLAS_ROOMS ${name})
  # The library contains the objects and links their dependencies; its users see the headers.
  target_sources(AttentionAtlasCore PRIVATE $<TARGET_OBJECTS:${room}>)
  target_link_libraries(AttentionAtlasCore PRIVATE ${arg_PUBLIC_EXTERNALS} ${arg_EXTERNALS})
endfunction()
