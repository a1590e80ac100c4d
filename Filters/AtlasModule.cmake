# atlas_add_vtk_module(NAME CLASSES class... [SOURCES file...] [HEADERS file...]) adds one of our
# VTK modules: one .h and .cxx per class, linked to Core and compiled with our warnings.
function(atlas_add_vtk_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "CLASSES;SOURCES;HEADERS")
  vtk_module_add_module(${name} CLASSES ${arg_CLASSES} SOURCES ${arg_SOURCES} HEADERS ${arg_HEADERS})
  # BUILD_INTERFACE: the headers of Core are not installed.
  vtk_module_link(${name} PRIVATE "$<BUILD_INTERFACE:AttentionAtlasCore>")
  vtk_module_compile_options(${name} PRIVATE ${ATLAS_COMPILE_OPTIONS})
  vtk_module_set_properties(${name} ${ATLAS_UNITED})
endfunction()
