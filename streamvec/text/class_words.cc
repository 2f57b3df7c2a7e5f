#include "streamvec/text/class_words.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace streamvec {
namespace {

using namespace evidence;

// Words in lower case; one that ends in "*" stands for every word that starts so. English first, then what sites in
// other languages write in their class names.
struct WordList {
  uint8_t meaning;
  std::string_view words;
};

constexpr uint8_t kNegation = 128;  // says that the rest of the name is about something else

constexpr WordList kLists[] = {
    {kNegation, "has no not with without is hide show open"},
    {kHidden, "visuallyhidden screenreader offscreen invisible dnone noprint"},
    {kComments,
     "comment* disqus* cmt cmts commentaire* comentario* kommentar* commento commenti respond replies pinglun livefyre "
     "talkback reaction* reacties dsq"},
    {kJunk,
     "related* relate recommend* recirc* share* sharing sharedaddy sociable social* cookie* consent* gdpr ccpa "
     "onetrust "
     "newsletter* subscribe* subscription* signup signin login register* promo* advert* adsense advertisement "
     "sponsor* taboola outbrain revcontent zergnet mgid breadcrumb* crumbs nav* menu* submenu dropdown footer* "
     "colophon "
     "sidebar* sidenav rail pagination pager paging popup* modal* lightbox overlay* toolbar* trending mostread "
     "mostpopular popular* masthead skiplink* skip toc tableofcontents printfriendly addthis addtoany jetpack flair "
     "syndication donate* donation* paywall* piano upsell outro readmore readnext morestories morefrom "
     "infobox navbox noprint catlinks mwjump editsection reflist authorbox authorbio bio aboutauthor socials follow "
     "gnb lnb snb fnb werbung anzeige teilen partage* compartir compartilhar publicidad* publicite pubblicita reklama "
     "rekl relacionad* verwandt* weiterlesen fusszeile kopfzeile tuijian xiangguan daohang fenxiang kanren "
     "hotnews rankinglist ranking notification* toast cta callout* interstitial feedback survey poll quiz "
     "caption* bildunterschrift legende shoutbox tagcloud blogroll archives widget* teaser* linklist quicklinks "
     "sitelinks"},
    {kPoor,
     "meta banner* tag tags tagged tagline author* byline* dateline timestamp date time published header head top "
     "bottom "
     "extra* aside side ad ads adv advert dfp gpt credit* copyright* legal disclaimer* print tool tools rating* "
     "stars vote votes counter button* btn* more next prev previous links link list category categories cat cats "
     "topics "
     "topic keywords hidden label labels badge license infoline info utility actions action control* gallery* slider* "
     "slideshow carousel video* player* embed* media thumb* attachment expand* options language lang search* form "
     "login "
     "contact* map calendar event* shop* cart price buy product* image* photo* figure"},
    {kRich,
     "article* articles body content* entry hentry main post posts text blog story page prose richtext markdown "
     "wysiwyg "
     "rte copy bodycopy artikel* beitrag inhalt texte contenu noticia* nota cuerpo contenido corpo testo articolo "
     "artigo conteudo statya news tresc tekst haber icerik zhengwen neirong honbun kiji view readable lead intro "
     "standfirst summary abstract answer question message messages thread"},
    {kBody,
     "articlebody articlecontent articletext bodytext bodycopy postbody postcontent posttext entrycontent entrybody "
     "storybody storycontent storytext maintext fulltext mainarticle newscontent newsbody newsct newsview artcontent "
     "articleviewcontent viewcontent contentbody contenttext textbody htmlcontent articledetail detailcontent"},
    {kTitleLike, "headline title subject hed"},
};

constexpr size_t kWordMax = 31;
constexpr int kNameWordsMax = 4;  // a longer name is a sentence made into one ("sharing-with-a-single-developer-1")

struct Entry {
  std::string_view word;
  uint8_t meaning;
  bool prefix;
};

// Rows by the hash of a word's first three letters; words shorter than that have rows of their own.
class Table {
 public:
  Table() {
    for (const WordList& list : kLists) add(list);
  }
  uint8_t find(std::string_view word) const {
    uint8_t meaning = 0;
    for (const Entry& entry : rows_[row(word)])
      if (entry.prefix ? word.starts_with(entry.word) : word == entry.word) meaning |= entry.meaning;
    return meaning;
  }

 private:
  static constexpr size_t kRows = 4096;

  static size_t row(std::string_view word) {
    uint32_t key = 0;
    std::memcpy(&key, word.data(), word.size() < 3 ? word.size() : 3);
    return (key * 0x9E3779B1u) >> 20;
  }
  void add(const WordList& list) {
    std::string_view rest = list.words;
    while (!rest.empty()) {
      const size_t space = rest.find(' ') == rest.npos ? rest.size() : rest.find(' ');
      std::string_view word = rest.substr(0, space);
      rest.remove_prefix(space < rest.size() ? space + 1 : space);
      const bool prefix = word.ends_with('*');
      if (prefix) word.remove_suffix(1);
      rows_[row(word)].push_back({word, list.meaning, prefix});
    }
  }

  std::array<std::vector<Entry>, kRows> rows_;
};

const Table& table() {
  static const Table words;
  return words;
}

// One name, word by word.
class NameReader {
 public:
  void add(char c) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool letter = upper || (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80;
    if (!letter || (upper && !last_upper_)) end_word();
    last_upper_ = upper;
    if (!letter) return;
    if (length_ < kWordMax) word_[length_++] = static_cast<char>(upper ? c | 0x20 : c);
  }
  // What the name says; starts the next one.
  uint8_t finish() {
    end_word();
    uint8_t meaning = meaning_;
    if (negated_ || words_ > kNameWordsMax) meaning = 0;
    if ((meaning & (kRich | kTitleLike)) != 0 && rich_words_ >= 2 && body_last_) meaning |= kBody;
    if ((meaning & (kJunk | kComments)) != 0) meaning &= static_cast<uint8_t>(~(kRich | kBody | kTitleLike));
    meaning_ = 0;
    words_ = rich_words_ = 0;
    negated_ = last_upper_ = body_last_ = hide_next_ = false;
    return meaning;
  }

 private:
  void end_word() {
    if (length_ == 0) return;
    const std::string_view word(word_, length_);
    const uint8_t found = table().find(word);
    if (words_ == 0 && (found & kNegation) != 0) negated_ = true;
    meaning_ |= found & static_cast<uint8_t>(~kNegation);
    if ((found & kRich) != 0) ++rich_words_;
    body_last_ = word == "body" || word == "content" || word == "text" || word == "copy";
    hide_pairs(word);
    ++words_;
    length_ = 0;
  }
  // "sr-only", "visually-hidden", "screen-reader-text", "d-none": words that mean something only together.
  void hide_pairs(std::string_view word) {
    const bool second = word == "only" || word == "hidden" || word == "reader" || word == "none";
    if (hide_next_ && second) meaning_ |= kHidden;
    hide_next_ = word == "sr" || word == "visually" || word == "screen" || word == "d";
  }

  char word_[kWordMax + 1] = {};
  size_t length_ = 0;
  uint8_t meaning_ = 0;
  int words_ = 0, rich_words_ = 0;
  bool negated_ = false, last_upper_ = false, body_last_ = false, hide_next_ = false;
};

}  // namespace

uint8_t class_evidence(std::string_view names) {
  NameReader reader;
  uint8_t meaning = 0;
  for (const char c : names) {
    if (c == ' ' || (c >= '\t' && c <= '\r'))
      meaning |= reader.finish();
    else
      reader.add(c);
  }
  return meaning | reader.finish();
}

}  // namespace streamvec
