# streamvec_library(NAME SOURCES a.cc ... [LINK target ...]): the library of folder streamvec/NAME as streamvec::NAME,
# and one test program of every *_test.cc beside it, each of whose tests ctest runs under the name NAME.Suite.Claim.
# Flags belong to targets: warnings here, instruction sets on the files that dispatch at run time.
# g++ 12 warns wrongly of overlap in "literal" + std::string (GCC bug 105651), so -Wrestrict is off there.
add_library(streamvec_flags INTERFACE)
target_compile_options(streamvec_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<BOOL:${STREAMVEC_WERROR}>:-Werror>)

function(streamvec_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(streamvec_${name} ${arg_SOURCES})
  add_library(streamvec::${name} ALIAS streamvec_${name})
  target_include_directories(streamvec_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_features(streamvec_${name} PUBLIC cxx_std_20)
  target_link_libraries(streamvec_${name} PUBLIC ${arg_LINK} PRIVATE $<BUILD_INTERFACE:streamvec_flags>)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  if(STREAMVEC_TESTS AND tests)
    streamvec_test(${name}_test SOURCES ${tests} LINK streamvec::${name} PREFIX ${name}.)
  endif()
endfunction()

# streamvec_test(NAME SOURCES a_test.cc ... LINK target ... [PREFIX p.]): a gtest program, one ctest entry per test.
function(streamvec_test name)
  cmake_parse_arguments(arg "" "PREFIX" "SOURCES;LINK" ${ARGN})
  include(GoogleTest)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} streamvec_flags GTest::gmock GTest::gtest_main)
  # A clean build is mostly tests, and a test mostly headers and macros: both together halve its time.
  target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <functional> <memory> <string> <vector>)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  gtest_discover_tests(${name} TEST_PREFIX ${arg_PREFIX} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()
