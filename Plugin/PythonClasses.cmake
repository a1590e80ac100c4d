# The VTK classes of the modules that need no ParaView, for Python: the package attentionatlas.vtk.
# VTK's tool writes their types (.pyi) from the modules, which it imports: not with sanitizers, whose
# runtime Python does not have, and not before VTK 9.2, which has no such tool.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(stubs)
if(NOT ATLAS_SANITIZE AND VTK_VERSION VERSION_GREATER_EQUAL 9.2)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import vtkmodules.generate_pyi"
    RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(missing EQUAL 0)
    set(stubs BUILD_PYI_FILES ON)
  else()
    message(STATUS "attentionatlas.vtk has no types: ${Python3_EXECUTABLE} has no vtkmodules.generate_pyi")
  endif()
endif()
if(stubs AND NOT TARGET vtk_python_copy)
  add_custom_target(vtk_python_copy) # of VTK's own build, for which the tool of VTK 9.6 waits
endif()
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
  ${stubs})
# The wrappers only pass arguments on.
foreach(module IN LISTS wrapped_modules)
  string(REPLACE "::" "" wrapper "${module}Python")
  if(TARGET ${wrapper})
    set_target_properties(${wrapper} PROPERTIES ${ATLAS_UNITED})
    target_compile_options(${wrapper} PRIVATE -O1 -g0)
  endif()
endforeach()
