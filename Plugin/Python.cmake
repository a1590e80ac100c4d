# The Python package beside the plugin, in the build folder and in an install, and the figures.
set(ATLAS_PYTHON_DIR "${CMAKE_INSTALL_LIBDIR}/python3/dist-packages")
file(GLOB python_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/attentionatlas/*.py")
set(python_copies)
foreach(source IN LISTS python_sources)
  cmake_path(GET source FILENAME name)
  set(copy "${CMAKE_BINARY_DIR}/${ATLAS_PYTHON_DIR}/attentionatlas/${name}")
  add_custom_command(OUTPUT "${copy}"
    COMMAND "${CMAKE_COMMAND}" -E copy "${source}" "${copy}"
    DEPENDS "${source}"
    COMMENT "Copying attentionatlas/${name}")
  list(APPEND python_copies "${copy}")
endforeach()
add_custom_target(attentionatlas-python ALL DEPENDS ${python_copies})
install(FILES ${python_sources} DESTINATION "${ATLAS_PYTHON_DIR}/attentionatlas")

# The tour of the models and recordings in Data. They need an X display: a virtual one where there is no other.
find_program(ATLAS_PVPYTHON pvpython HINTS "${ParaView_PREFIX_PATH}/bin")
file(GLOB recordings CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/Data/recordings/*")
file(GLOB models CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/Data/*.safetensors")
list(TRANSFORM recordings PREPEND "--recording=" OUTPUT_VARIABLE recording_options)
find_program(ATLAS_XVFB Xvfb)
set(run_on_display)
if(ATLAS_XVFB)
  set(run_on_display "${CMAKE_CURRENT_SOURCE_DIR}/with-display.sh")
endif()
set(run_python "${CMAKE_COMMAND}" -E env
  "PYTHONPATH=${CMAKE_BINARY_DIR}/${ATLAS_PYTHON_DIR}"
  "ATLAS_PLUGIN=$<TARGET_FILE:AttentionAtlas>"
  ${run_on_display} "${ATLAS_PVPYTHON}")
add_custom_target(figures
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${ATLAS_FIGURES_DIR}"
  COMMAND ${run_python} -m attentionatlas.scene "${CMAKE_SOURCE_DIR}/Data/trained-n5-h3.safetensors"
    -o "${ATLAS_FIGURES_DIR}/scene.pvsm"
  COMMAND ${run_python} -m attentionatlas.tour ${models} ${recording_options} --layer 4 --head 11
    -o "${ATLAS_FIGURES_DIR}"
  DEPENDS AttentionAtlas attentionatlas-python
  COMMENT "Rendering figures"
  USES_TERMINAL)
