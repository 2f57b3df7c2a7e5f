// Article pages as news sites have them: the story in the middle of menus, banners, scripts, links and comments.
// Private to the newsroom.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/source/newsroom/writer.h"

namespace streamvec::newsroom {

struct Link {
  std::string url, title;
};

struct Page {
  std::string url;   // its own
  std::string time;  // RFC 3339
  Story story;
  std::vector<Link> related;
};

// Four designs, chosen by the story's number: a newspaper with <article>, a blog with classes, tables of the nineties,
// and an application's nested <div>s. About 20 KB in UTF-8, which it says in a <meta>.
std::string page_html(const Page& page);
// A page of links alone, for "/".
std::string front_html(const std::vector<Link>& links);

// `text` with &, <, > and quotation marks as entities, for HTML and XML.
std::string escaped(std::string_view text);

}  // namespace streamvec::newsroom
