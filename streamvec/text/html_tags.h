// The HTML elements that matter for finding a page's text, and what each does to the text around it.
#pragma once

#include <cstdint>
#include <string_view>

namespace streamvec {

enum class Tag : uint8_t {
  kOther,   // everything without an effect on blocks: b, em, font, img, unknown names
  kCustom,  // a name with a hyphen: <amp-sidebar>
  kA,
  kAddress,
  kArticle,
  kAside,
  kAudio,
  kBlockquote,
  kBody,
  kBr,
  kButton,
  kCanvas,
  kCaption,
  kCenter,
  kDatalist,
  kDd,
  kDetails,
  kDialog,
  kDiv,
  kDl,
  kDt,
  kFieldset,
  kFigcaption,
  kFigure,
  kFooter,
  kForm,
  kH1,
  kH2,
  kH3,
  kH4,
  kH5,
  kH6,
  kHeader,
  kHgroup,
  kHr,
  kHtml,
  kIframe,
  kInput,
  kLabel,
  kLegend,
  kLi,
  kLink,
  kMain,
  kMath,
  kMenu,
  kMeta,
  kNav,
  kNoembed,
  kNoframes,
  kNoscript,
  kObject,
  kOl,
  kOptgroup,
  kOption,
  kP,
  kPre,
  kRp,
  kRt,
  kScript,
  kSearch,
  kSection,
  kSelect,
  kSpan,
  kStyle,
  kSummary,
  kSup,
  kSvg,
  kTable,
  kTd,
  kTemplate,
  kTextarea,
  kTh,
  kTime,
  kTitle,
  kTr,
  kUl,
  kVideo,
  kXmp,
  kCount,
};

constexpr int kTagCount = static_cast<int>(Tag::kCount);

namespace tag_flag {
constexpr uint8_t kBlock = 1;    // ends the paragraph before it and after it
constexpr uint8_t kInline = 2;   // kept track of, breaks nothing
constexpr uint8_t kSkip = 4;     // what it holds is not text to read
constexpr uint8_t kRaw = 8;      // what it holds is passed over to its first end tag, not read as tags
constexpr uint8_t kStrict = 16;  // with kRaw: when no end tag comes, the rest of the page is inside it (as browsers do)
}  // namespace tag_flag

// Of a name in any case. Names with a hyphen are kCustom, unknown ones kOther.
Tag find_tag(std::string_view name);
// The name in lower case; "" for kOther and kCustom.
std::string_view tag_name(Tag tag);
uint8_t tag_flags(Tag tag);
inline bool has_flag(Tag tag, uint8_t flag) {
  return (tag_flags(tag) & flag) != 0;
}
inline bool is_heading(Tag tag) {
  return tag >= Tag::kH1 && tag <= Tag::kH6;
}

}  // namespace streamvec
