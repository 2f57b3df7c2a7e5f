// Words put together from parts: "hydro" + "phone". The last part tells the class, whatever stands before it, so who
// has learned the parts can place a word never met. Private to the newsroom.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace streamvec::newsroom {

// By index of the class in planted_truth(). Every first part and every last part is known from many compounds.
struct ClassCoinage {
  std::vector<std::string> known;   // used from the first article on
  std::vector<std::string> coined;  // used from the change on, and rarely
  std::vector<std::string> unseen;  // never used
};

const std::vector<ClassCoinage>& coinage();

}  // namespace streamvec::newsroom
