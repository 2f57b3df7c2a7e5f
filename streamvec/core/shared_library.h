// A library that is looked for while the program runs, so that it starts where the library is missing.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace streamvec {

// Stays open for ever.
class SharedLibrary {
 public:
  // Looks where the system does, then in each folder.
  explicit SharedLibrary(const std::string& name, std::initializer_list<const char*> folders = {})
      : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) error_ = ::dlerror();  // it may be there, and not fit
    for (const char* folder : folders)
      if (handle_ == nullptr) handle_ = ::dlopen((std::string(folder) + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) error_.clear();
  }

  // nullptr where it is missing, which is an error then.
  template <typename Function>
  void find(const char* name, Function& function) {
    function = handle_ == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function == nullptr && error_.empty()) error_ = std::string("it has no ") + name;
  }

  // Why it cannot be used; empty when it can.
  const std::string& error() const { return error_; }

 private:
  void* handle_;
  std::string error_;
};

}  // namespace streamvec
