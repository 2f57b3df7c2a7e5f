# streamvec_library(NAME SOURCES a.cc ... [LINK target ...] [OWN] [LONG_TESTS]): the library of folder streamvec/NAME as
# streamvec::NAME, and one test program of every *_test.cc beside it, each of whose suites ctest runs under the name
# NAME.Suite. It is installed for other programs, unless it is the program's OWN.
# Flags belong to targets: warnings here, instruction sets on the files that dispatch at run time.
# g++ collects its garbage from 1 GB on, not from 128 MB: a tenth of its time.
# g++ 12 warns wrongly of overlap in "literal" + std::string (GCC bug 105651), so -Wrestrict is off there.
add_library(streamvec_flags INTERFACE)
target_compile_options(streamvec_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<BOOL:${STREAMVEC_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>>)
# A clean build is mostly tests, and they do not have to be fast; yet at -O0, where they take a quarter less to compile,
# some run ten times as long (docs/BENCHMARKS.md, Builds). At -O1 g++ 12 warns wrongly of bounds in std::string, so a
# build that ends at warnings stays at -O2. hiredis defines the macro, and all tests have to agree on it.
add_library(streamvec_test_flags INTERFACE)
target_link_libraries(streamvec_test_flags INTERFACE streamvec_flags GTest::gmock GTest::gtest)
target_compile_options(streamvec_test_flags INTERFACE $<$<AND:$<CONFIG:Release>,$<NOT:$<BOOL:${STREAMVEC_WERROR}>>>:-O1;-Wno-array-bounds;-Wno-stringop-overflow>)
target_compile_definitions(streamvec_test_flags INTERFACE _FILE_OFFSET_BITS=64)

# Headers that every test reads are compiled once for all of them. tools/check builds without, so that every file
# includes what it uses. (For the libraries it gained nothing: 76 s against 72 for a third of them.)
if(STREAMVEC_TESTS)
  file(WRITE ${PROJECT_BINARY_DIR}/headers/test_headers.cc "")
  add_library(streamvec_test_headers OBJECT ${PROJECT_BINARY_DIR}/headers/test_headers.cc)
  target_link_libraries(streamvec_test_headers PRIVATE streamvec_test_flags)
  target_precompile_headers(streamvec_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <chrono> <cmath>
    <deque> <filesystem> <fstream> <functional> <memory> <optional> <span> <sstream> <string> <thread> <vector>)
  add_library(streamvec_test_main OBJECT ${PROJECT_SOURCE_DIR}/tests/unit_main.cc)
  target_link_libraries(streamvec_test_main PRIVATE streamvec_test_flags)
  target_precompile_headers(streamvec_test_main REUSE_FROM streamvec_test_headers)
endif()

function(streamvec_library name)
  cmake_parse_arguments(arg "OWN;LONG_TESTS" "" "SOURCES;LINK" ${ARGN})
  add_library(streamvec_${name} ${arg_SOURCES})
  add_library(streamvec::${name} ALIAS streamvec_${name})
  target_include_directories(streamvec_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(streamvec_${name} PUBLIC cxx_std_20)
  target_link_libraries(streamvec_${name} PUBLIC ${arg_LINK} PRIVATE $<BUILD_INTERFACE:streamvec_flags>)
  # Compiled once, for the program and for the Python module; hidden names keep the code as quick as without -fPIC.
  set_target_properties(streamvec_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(streamvec_${name} PRIVATE -fno-semantic-interposition)
  # Names in a folder's anonymous namespaces have to differ; a file that cannot be joined says SKIP_UNITY_BUILD_INCLUSION.
  set_target_properties(streamvec_${name} PROPERTIES UNITY_BUILD ${STREAMVEC_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  if(NOT arg_OWN)
    set_target_properties(streamvec_${name} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS streamvec_${name} EXPORT streamvec ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  endif()
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  if(STREAMVEC_TESTS AND tests)
    set(cost 1)
    if(arg_LONG_TESTS)
      set(cost 50)
    endif()
    streamvec_test(${name}_test SOURCES ${tests} LINK streamvec::${name} PREFIX ${name}. COST ${cost})
  endif()
endfunction()

# streamvec_test(NAME SOURCES a_test.cc ... LINK target ... PREFIX p. COST n): a gtest program, one ctest entry per suite.
# Suites of more COST begin first, so that a run does not end with a long one alone.
function(streamvec_test name)
  cmake_parse_arguments(arg "" "PREFIX;COST" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} streamvec_test_flags streamvec_test_main)
  target_precompile_headers(${name} REUSE_FROM streamvec_test_headers)
  # As with the libraries: eight at a time take a sixth less to compile than four.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${STREAMVEC_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  set(script ${PROJECT_SOURCE_DIR}/cmake/suites.cmake)
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${script})
  add_custom_command(TARGET ${name} POST_BUILD BYPRODUCTS ${suites} VERBATIM COMMAND ${CMAKE_COMMAND}
    -D PROGRAM=$<TARGET_FILE:${name}> -D PREFIX=${arg_PREFIX} -D COST=${arg_COST}
    -D DIRECTORY=${CMAKE_CURRENT_BINARY_DIR} -D FILE=${suites} -P ${script})
  # A program that was not built is a test that fails.
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake)
  file(WRITE ${include} "if(EXISTS \"${suites}\")\n  include(\"${suites}\")\nelse()\n"
    "  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()
