// streamvec_pages man|bash: what pages.h makes, on standard output; for the build.
#include <iostream>
#include <string_view>

#include "apps/streamvec/pages.h"

int main(int argc, char** argv) {
  const std::string_view wanted = argc == 2 ? argv[1] : "";
  if (wanted == "man")
    std::cout << streamvec::cli::man_page(STREAMVEC_VERSION);
  else if (wanted == "bash")
    std::cout << streamvec::cli::bash_completion();
  else
    return 2;
  return std::cout.flush() ? 0 : 1;
}
