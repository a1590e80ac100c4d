# Our VTK modules, those of them that need no ParaView, and the modules of VTK that these use.
set(ATLAS_MODULES Support Data Interface IO Views Torus Transformers Attention Tokens Embedding Analysis Circuits
  Learning Corpus Geometry)
set(ATLAS_VTK_MODULES)
set(ATLAS_VTK_COMPONENTS)
foreach(module IN LISTS ATLAS_MODULES)
  file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/${module}/vtk.module" used REGEX "(ParaView|VTK)::")
  if(NOT used MATCHES "ParaView::")
    list(APPEND ATLAS_VTK_MODULES ${module})
    list(TRANSFORM used REPLACE ".*::" "")
    list(APPEND ATLAS_VTK_COMPONENTS ${used})
  endif()
endforeach()
list(REMOVE_DUPLICATES ATLAS_VTK_COMPONENTS)

# atlas_add_vtk_module(NAME) adds the folder as one of our VTK modules, linked to Core and compiled with our warnings. Each
# vtk*.cxx is a class with a header of its name; the other sources are the module's own.
function(atlas_add_vtk_module name)
  file(GLOB sources RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" CONFIGURE_DEPENDS "*.cxx")
  set(classes ${sources})
  list(FILTER classes INCLUDE REGEX "^vtk")
  list(FILTER sources EXCLUDE REGEX "^vtk")
  list(TRANSFORM classes REPLACE "[.]cxx$" "")
  vtk_module_add_module(${name} CLASSES ${classes} SOURCES ${sources} ${ARGN})
  # BUILD_INTERFACE: the headers of Core are not installed.
  vtk_module_link(${name} PRIVATE "$<BUILD_INTERFACE:AttentionAtlasCore>")
  vtk_module_compile_options(${name} PRIVATE ${ATLAS_COMPILE_OPTIONS})
  vtk_module_set_properties(${name} ${ATLAS_UNITED})
endfunction()
