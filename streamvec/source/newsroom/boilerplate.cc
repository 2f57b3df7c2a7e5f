#include "streamvec/source/newsroom/boilerplate.h"

namespace streamvec::newsroom::boilerplate {
namespace {

constexpr std::string_view kAuthorsList[] = {"Morgan Ellery", "Priya Nadkarni", "Tobias Wexford", "Ines Calloway",
                                             "Desmond Okafor"};

constexpr std::string_view kCommentsList[] = {
    "Totally agree with the columnist here, great reporting as usual!!! Keep it coming folks.",
    "This is nonsense. My cousin in Leeds reads it differently and nobody at the Herald bothers to verify anything.",
    "First! Also, can moderators please fix the login button on Android? It crashes whenever I comment.",
    "Thanks for sharing. Does anybody have a source for that statistic in paragraph three? Asking for a friend.",
    "Clickbait headline, mediocre content. I unsubscribed last month and do not regret it, lol.",
    "@moderator why was my earlier reply removed? Freedom of speech apparently means nothing around here.",
};

constexpr std::string_view kAdvertisementsList[] = {
    "Sponsored: refinance your mortgage with Brightwell Finance and get cashback. Terms apply.",
    "Advertisement: premium mattresses, free delivery, hundred-night trial. Shop the sale!",
    "Promoted content from our partners: seven gadgets engineers cannot believe are legal.",
};

constexpr std::string_view kCaptionsList[] = {
    "File photograph. Credit: Herald Picture Desk / Agence Example",
    "Illustration courtesy of Getty Placeholder Images",
    "Photograph supplied by readers. Copyright reserved.",
};

}  // namespace

const std::span<const std::string_view> kAuthors = kAuthorsList, kComments = kCommentsList,
                                        kAdvertisements = kAdvertisementsList, kCaptions = kCaptionsList;

const std::string_view kMenu = R"(<header class="site-header" role="banner">
<div class="brand"><a href="/"><img src="/static/logo.svg" alt="The Loopback Herald logo"></a></div>
<nav class="main-nav" aria-label="Primary navigation"><ul>
<li><a href="/">Homepage</a></li><li><a href="/section/world">World</a></li>
<li><a href="/section/politics">Politics</a></li><li><a href="/section/business">Business</a></li>
<li><a href="/section/technology">Technology</a></li><li><a href="/section/science">Science</a></li>
<li><a href="/section/culture">Culture</a></li><li><a href="/section/opinion">Opinion</a></li>
<li><a href="/section/lifestyle">Lifestyle</a></li><li><a href="/section/weather">Weather</a></li>
<li><a href="/section/obituaries">Obituaries</a></li><li><a href="/section/crosswords">Crosswords</a></li>
<li><a href="/section/podcasts">Podcasts</a></li><li><a href="/section/video">Video</a></li>
</ul></nav>
<form class="search" action="/search"><label for="q">Search the Herald</label><input id="q" name="q"
placeholder="Type keywords"><button>Search</button></form>
<div class="account"><a href="/login">Login</a> | <a href="/register">Register</a> | <a href="/subscribe">Subscribe</a>
<span class="badge">Special introductory offer</span></div>
</header>
)";

const std::string_view kCookieBanner =
    R"(<div id="cookie-consent" class="cookie-banner" role="dialog" aria-modal="true">
<h2>We value your privacy</h2>
<p>The Herald and our advertising partners use cookies and similar technologies to personalise content, measure
audiences and improve your browsing experience. By clicking Accept you consent to the processing of personal data as
described in our <a href="/privacy">privacy policy</a>. Preferences can be changed whenever you wish in
<a href="/cookies">cookie settings</a>.</p>
<button class="accept">Accept everything</button> <button class="reject">Reject optional cookies</button>
<button class="manage">Manage preferences</button>
</div>
)";

const std::string_view kShareBar = R"(<div class="share-bar social" aria-label="Share"><span>Share via</span>
<a href="https://facebook.example/sharer">Facebook</a> <a href="https://twitter.example/intent">Twitter</a>
<a href="https://linkedin.example/share">LinkedIn</a> <a href="https://whatsapp.example/send">WhatsApp</a>
<a href="mailto:?subject=Herald">Email</a> <a href="#print">Print</a> <a href="#bookmark">Bookmark</a>
<a href="#copy">Copy hyperlink</a></div>
)";

const std::string_view kNewsletter = R"(<section class="newsletter-signup promo">
<h3>Sign up for our newsletter</h3>
<p>Get breaking headlines and exclusive analysis delivered straight to your inbox. Unsubscribe anytime.</p>
<form><input type="email" placeholder="Your email address"><button>Sign me up</button></form>
<small>By signing up you accept our terms of service and acknowledge our privacy policy.</small>
</section>
)";

const std::string_view kSidebar = R"(<aside class="sidebar widget-area">
<div class="widget most-read"><h3>Most read</h3><ol>
<li><a href="/popular/first">Parliament delays controversial bill amid protests</a></li>
<li><a href="/popular/second">Celebrity couple announce separation on Instagram</a></li>
<li><a href="/popular/third">Inflation figures surprise economists</a></li>
<li><a href="/popular/fourth">Startup raises millions for blockchain platform</a></li>
</ol></div>
<div class="widget trending"><h3>Trending topics</h3><a href="/tag/elections">#elections</a>
<a href="/tag/climate">#climate</a> <a href="/tag/economy">#economy</a> <a href="/tag/healthcare">#healthcare</a>
<a href="/tag/celebrity">#celebrity</a></div>
<div class="widget follow"><h3>Follow us</h3><a href="/rss">RSS</a> <a href="/app">Download our app</a></div>
</aside>
)";

const std::string_view kFooter = R"(<footer class="site-footer" role="contentinfo">
<div class="columns"><ul><li><a href="/about">About us</a></li><li><a href="/contact">Contact</a></li>
<li><a href="/careers">Careers</a></li><li><a href="/advertise">Advertise with us</a></li>
<li><a href="/corrections">Corrections</a></li><li><a href="/accessibility">Accessibility</a></li></ul>
<ul><li><a href="/terms">Terms and conditions</a></li><li><a href="/privacy">Privacy policy</a></li>
<li><a href="/cookies">Cookie settings</a></li><li><a href="/licensing">Licensing</a></li>
<li><a href="/sitemap">Sitemap</a></li><li><a href="/subscriptions">Manage subscription</a></li></ul></div>
<p class="legal">&copy; 2024 Loopback Herald Media Group Limited. Reproduction without written permission prohibited.
Registered in Delaware, company number 0127001. The Herald is regulated by the Independent Press Standards Board; to
complain please contact our editorial helpdesk.</p>
</footer>
)";

const std::string_view kTablesHeader = R"(<table width="100%" border="0" cellpadding="4"><tr bgcolor="#003366">
<td><font color="#ffffff" size="5"><b>The Loopback Herald</b></font></td>
<td align="right"><font color="#ffffff"><a href="/">Homepage</a> | <a href="/archive">Archive</a> |
<a href="/guestbook">Guestbook</a> | <a href="/webmaster">Webmaster</a></font></td></tr></table>
<table width="100%"><tr><td width="160" valign="top" bgcolor="#eeeeee"><b>Sections</b><br>
<a href="/section/world">World</a><br><a href="/section/politics">Politics</a><br>
<a href="/section/business">Business</a><br><a href="/section/technology">Technology</a><br>
<a href="/section/weather">Weather</a><br><a href="/section/classifieds">Classifieds</a><br>
<b>Visitors</b><br>You are visitor number 048213<br><i>Best viewed in Netscape at 800x600</i></td>
)";

const std::string_view kTablesFooter = R"(</tr></table><hr><center><font size="1">Copyright Loopback Herald Media.
<a href="/privacy">Privacy</a> | <a href="/terms">Terms</a> | <a href="mailto:webmaster@herald.example">Email the
webmaster</a></font></center>
)";

const std::string_view kHead = R"(<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/static/stylesheet.css"><link rel="icon" href="/static/favicon.ico">
<link rel="alternate" type="application/rss+xml" title="Herald RSS" href="/feed.xml">
<style>.site-header{display:flex;background:#fff}.main-nav li{display:inline-block;padding:4px 8px}
.cookie-banner{position:fixed;bottom:0;z-index:9999;box-shadow:0 0 8px rgba(0,0,0,.4)}.sidebar{float:right;width:300px}
@media(max-width:600px){.sidebar{display:none}}</style>
<script>window.dataLayer=window.dataLayer||[];function gtag(){dataLayer.push(arguments)}
gtag("config","UA-000000-1",{anonymizeIp:true,pageType:"newsarticle"});if(1<2&&"<p>prefetch</p>")console.debug("ok");
</script>
<noscript>Please enable JavaScript to view our multimedia.</noscript>
)";

const std::string_view kTracking = R"(<script src="/static/bundle.js" defer></script>
<script type="text/javascript">
(function(){var tracker=document.createElement("script");tracker.async=true;tracker.src="/static/analytics.js";
var placement="<div class='adslot'>Loading sponsored recommendations</div>";window.adQueue=(window.adQueue||[]);
adQueue.push({unit:"leaderboard",html:placement,retries:3});document.body.appendChild(tracker);})();
</script>
)";

}  // namespace streamvec::newsroom::boilerplate
