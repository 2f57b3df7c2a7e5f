# cmake -DOUT=FILE.cc -DDIR=FOLDER -P embed.cmake: a source with every file below FOLDER as an Asset
# (streamvec/serve/assets.h), by its path there. The assembler reads the files, so that large ones cost no compile time.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE files RELATIVE ${DIR} ${DIR}/*)
list(SORT files)
set(types ".html=text/html\; charset=utf-8" ".css=text/css\; charset=utf-8" ".js=text/javascript\; charset=utf-8"
          ".json=application/json" ".svg=image/svg+xml" ".png=image/png" ".ico=image/x-icon" ".woff2=font/woff2"
          ".txt=text/plain\; charset=utf-8" ".map=application/json" ".webmanifest=application/manifest+json")
set(blocks "")
set(rows "")
set(names "")
set(index 0)
foreach(file ${files})
  get_filename_component(ending ${file} LAST_EXT)
  set(type "application/octet-stream")
  foreach(pair ${types})
    if(pair MATCHES "^\\${ending}=(.*)$")
      set(type "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  file(SHA256 ${DIR}/${file} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  string(APPEND blocks "asm(\".section .rodata\\n\"
    \".global streamvec_asset_${index}\\nstreamvec_asset_${index}:\\n.incbin \\\"${DIR}/${file}\\\"\\n\"
    \".global streamvec_asset_${index}_end\\nstreamvec_asset_${index}_end:\\n.byte 0\\n.previous\\n\");
extern \"C\" const char streamvec_asset_${index}[], streamvec_asset_${index}_end[];
")
  string(APPEND rows "      {\"/${file}\", \"${type}\", {streamvec_asset_${index}, streamvec_asset_${index}_end}, \"\\\"${hash}\\\"\"},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT "// Made by cmake/embed.cmake.
#include \"streamvec/serve/assets.h\"

@blocks@
namespace streamvec {

std::span<const Asset> assets() {
  static const Asset kAssets[] = {
@rows@  };
  return kAssets;
}

}  // namespace streamvec
")
