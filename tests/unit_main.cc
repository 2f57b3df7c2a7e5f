// main() of every GoogleTest program. ctest runs a suite as one process, and learns from its end what became of it: 0
// for claims that held, 1 where one failed or there is none, 77 (SKIP_RETURN_CODE) where none failed and every one
// skipped itself. A claim that did not run has a line of its own, which tools/test repeats before the summary.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

namespace {

class SkipTeller : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Skipped()) return;
    std::string reason;
    for (int i = 0; i < test.result()->total_part_count(); ++i)
      if (const auto& part = test.result()->GetTestPartResult(i); part.skipped()) reason = part.message();
    tell(test, reason);
  }
  void OnTestDisabled(const testing::TestInfo& test) override { tell(test, "disabled"); }

  static void tell(const testing::TestInfo& test, std::string reason) {
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    std::cout << "skipped: " << test.test_suite_name() << "." << test.name() << ": " << reason << std::endl;
  }
};

// A claim that ends the program would pass over those after it, and its suite be taken for one that held.
const pid_t program = ::getpid();
bool all_ran = false;
void refuse_early_end() {
  if (all_ran || ::getpid() != program) return;  // a child of a death test ends as it likes
  std::cerr << "a test ended the program" << std::endl;
  ::_exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::atexit(refuse_early_end);
  auto& tests = *testing::UnitTest::GetInstance();
  tests.listeners().Append(new SkipTeller);  // owned by the list
  const int failed = RUN_ALL_TESTS();
  all_ran = true;
  if (tests.test_to_run_count() == 0) {
    std::cerr << "no test that could run has such a name" << std::endl;
    return 1;
  }
  const bool none_ran = tests.skipped_test_count() > 0 && tests.successful_test_count() == 0;
  return failed == 0 && none_ran ? 77 : failed;
}
