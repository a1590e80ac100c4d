# The VTK classes of the modules that need no ParaView, for Python: the package attentionatlas.vtk.
list(TRANSFORM ATLAS_VTK_MODULES PREPEND "AttentionAtlas::" OUTPUT_VARIABLE wrapped_modules)
vtk_module_wrap_python(
  MODULES ${wrapped_modules}
  TARGET AttentionAtlasPythonClasses
  PYTHON_PACKAGE "attentionatlas.vtk"
  MODULE_DESTINATION "${ATLAS_PYTHON_DIR}"
  LIBRARY_DESTINATION "${ATLAS_CORE_DIR}"
  COMPONENT runtime
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
