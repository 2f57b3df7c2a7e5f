# Run after a test program was linked: lists its suites and writes FILE, in which each is one ctest entry PREFIX + suite.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests TIMEOUT 60 OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
# A suite stands at the margin, as `Suite.` or `Suite/0.  # TypeParam = ...`; its tests are indented.
string(REGEX MATCHALL "\n[A-Za-z0-9_/]+\\." suites "\n${listed}")
set(entries)
foreach(suite ${suites})
  string(REGEX REPLACE "^\n|\\.$" "" suite ${suite})
  string(APPEND entries "add_test(\"${PREFIX}${suite}\" \"${PROGRAM}\" \"--gtest_filter=${suite}.*\")\n"
    "set_tests_properties(\"${PREFIX}${suite}\" PROPERTIES WORKING_DIRECTORY \"${DIRECTORY}\" SKIP_RETURN_CODE 77 "
    "TIMEOUT 600 COST ${COST})\n")
endforeach()
if(NOT entries)
  message(FATAL_ERROR "${PROGRAM} lists no tests")
endif()
file(WRITE ${FILE} "${entries}")
