# cmake -DOUT=FILE -P commit.cmake: writes a header with the commit of the source tree, if it has changed.
execute_process(COMMAND git describe --always --dirty --abbrev=12 OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR commit STREQUAL "")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define STREAMVEC_COMMIT \"@commit@\"\n" @ONLY)
