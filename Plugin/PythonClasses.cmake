# The VTK classes of the modules that need no ParaView, for Python: the package attentionatlas.vtk.
set(wrapped_modules)
foreach(module IN ITEMS Support Data IO Torus Transformers Attention Tokens Embedding Analysis Circuits Learning Corpus
    Geometry)
  list(APPEND wrapped_modules "AttentionAtlas::${module}")
endforeach()
vtk_module_wrap_python(
  MODULES ${wrapped_modules}
  TARGET AttentionAtlasPythonClasses
  PYTHON_PACKAGE "attentionatlas.vtk"
  MODULE_DESTINATION "lib/python3/dist-packages"
  LIBRARY_DESTINATION "${ATLAS_CORE_DIR}"
  BUILD_STATIC OFF
  INSTALL_HEADERS OFF
  BUILD_PYI_FILES OFF)
# The wrappers only pass arguments on.
foreach(module IN LISTS wrapped_modules)
  string(REPLACE "::" "" wrapper "${module}Python")
  if(TARGET ${wrapper})
    set_target_properties(${wrapper} PROPERTIES ${ATLAS_UNITED})
    target_compile_options(${wrapper} PRIVATE -O1 -g0)
  endif()
endforeach()
