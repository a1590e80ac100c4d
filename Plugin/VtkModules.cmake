# The modules that need no ParaView, as libraries of VTK alone (ATLAS_HOST=VTK).
list(TRANSFORM ATLAS_VTK_MODULES REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/Filters/\\1/vtk.module" OUTPUT_VARIABLE module_files)
vtk_module_scan(
  MODULE_FILES ${module_files}
  WANT_BY_DEFAULT ON
  HIDE_MODULES_FROM_CACHE ON
  PROVIDES_MODULES modules
  REQUIRES_MODULES required)
foreach(module IN LISTS required)
  if(NOT TARGET ${module})
    message(FATAL_ERROR "VTK: expected its module ${module}, found a VTK without it.")
  endif()
endforeach()
set(BUILD_SHARED_LIBS ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/${ATLAS_CORE_DIR}")
vtk_module_build(
  MODULES ${modules}
  PACKAGE AttentionAtlas
  INSTALL_HEADERS OFF
  LIBRARY_DESTINATION "${ATLAS_CORE_DIR}")
