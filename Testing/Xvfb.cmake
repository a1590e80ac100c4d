find_program(ATLAS_XVFB_RUN xvfb-run REQUIRED)

# atlas_xvfb_run(VARIABLE): the beginning of a command line that runs a program with an X server of
# its own. Each caller gets servers of its own to choose from: with --auto-servernum alone, two tests
# that start at the same time can choose the same number.
function(atlas_xvfb_run variable)
  get_property(number GLOBAL PROPERTY ATLAS_XVFB_NUMBER)
  if(NOT number)
    set(number 200)
  endif()
  math(EXPR next "${number} + 10")
  set_property(GLOBAL PROPERTY ATLAS_XVFB_NUMBER ${next})
  set(${variable} "${ATLAS_XVFB_RUN}" --auto-servernum --server-num=${number}
    "--server-args=-screen 0 1280x1024x24" PARENT_SCOPE)
endfunction()
