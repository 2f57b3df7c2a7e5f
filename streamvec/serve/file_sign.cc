#include "streamvec/serve/file_sign.h"

#include <sys/stat.h>

namespace streamvec {

std::string sign_of_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";
  return path + "/" + std::to_string(info.st_ino) + "/" + std::to_string(info.st_size) + "/" +
         std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec);
}

}  // namespace streamvec
