#include "streamvec/source/planted_words.h"

namespace streamvec::planted {
namespace {

constexpr ClassWords kClasses[] = {
    {"animals", "tiger wolf rabbit horse eagle salmon bear fox deer otter lion goat camel falcon badger squirrel",
     "hungry wild furry tame hunted young stray fierce caged gentle nocturnal frightened",
     "growled grazed slept hid nested bred fed roamed leapt crouched migrated burrowed"},
    {"foods",
     "bread cheese soup rice pasta salad stew cake pie omelette sausage porridge dumplings pudding yoghurt toast",
     "tasty salty baked creamy spicy homemade leftover crispy delicious bland greasy steaming",
     "cooled simmered tasted smelled burnt cooked melted spoiled thickened crumbled sizzled nourished"},
    {"professions",
     "doctor lawyer teacher nurse engineer carpenter plumber dentist baker surgeon clerk butcher tailor accountant "
     "architect librarian",
     "skilled retired trained qualified experienced licensed busy honest hired unionised competent overworked",
     "earned advised resigned consulted charged apprenticed lectured billed commuted practised specialised applied"},
    {"colours",
     "red blue green yellow purple orange brown grey pink crimson turquoise violet beige scarlet indigo maroon",
     "bright pale dark vivid faded painted dull glossy deep tinted faint dyed",
     "stripes shade hue pigment paint wallpaper tint patches lacquer ink glaze tiles"},
    {"vehicles",
     "car truck train bus bicycle tram ferry lorry van scooter motorcycle taxi helicopter tractor yacht wagon",
     "parked speeding rusty crowded delayed secondhand stolen overtaken diesel towed rented armoured",
     "braked accelerated swerved departed skidded refuelled crashed honked reversed overtook stalled arrived"},
    {"instruments",
     "piano violin guitar trumpet flute cello drum clarinet harp oboe banjo trombone accordion mandolin lute bassoon",
     "tuned acoustic melodic solo amplified plucked antique bowed orchestral muted concert electric",
     "sounded played echoed resonated rehearsed strummed improvised harmonised vibrated serenaded recorded hummed"},
    {"clothes",
     "shirt coat jacket trousers scarf gloves hat sweater dress skirt socks boots blouse waistcoat cardigan apron",
     "woollen torn knitted ironed tight sleeveless stained fashionable buttoned washable loose embroidered",
     "fitted hung shrank unbuttoned frayed matched wrinkled dried covered warmed suited folded"},
    {"plants", "oak rose tulip fern maple ivy daisy willow birch lavender orchid cactus bamboo elm clover jasmine",
     "blooming leafy thorny withered watered pruned evergreen potted fragrant climbing budding transplanted",
     "grew blossomed wilted sprouted rooted flowered shed thrived swayed germinated ripened drooped"},
    {"sports",
     "football tennis hockey cricket rugby basketball golf volleyball badminton baseball handball boxing squash "
     "fencing "
     "rowing judo",
     "professional amateur indoor televised olympic competitive weekly junior veteran mixed national seasonal",
     "tournament match league championship umpire coach stadium trophy referee practice fans season"},
    {"minerals",
     "iron copper silver gold zinc tin nickel lead cobalt quartz platinum marble granite titanium sulphur graphite",
     "molten mined polished refined impure corroded smelted precious industrial raw magnetic hardened",
     "ore alloy deposits veins mine ingot furnace oxide nuggets quarry foundry slag"},
};

constexpr RelationWords kRelations[] = {
    {"country-capital",
     "france paris japan tokyo italy rome spain madrid egypt cairo kenya nairobi peru lima cuba havana norway oslo "
     "sweden stockholm greece athens austria vienna hungary budapest poland warsaw portugal lisbon russia moscow china "
     "beijing korea seoul thailand bangkok vietnam hanoi canada ottawa chile santiago turkey ankara ireland dublin",
     "border population export army territory president currency treaty provinces farmland",
     "mayor suburbs downtown metro skyline avenue boulevard districts airport commuters"},
    {"present-past",
     "walk walked jump jumped climb climbed dance danced whisper whispered shout shouted laugh laughed smile smiled "
     "boil "
     "boiled push pushed carry carried open opened close closed watch watched listen listened travel travelled answer "
     "answered borrow borrowed repair repaired collect collected",
     "now today currently usually always nowadays daily often tomorrow presently",
     "yesterday ago formerly once previously earlier recently then decades lately"},
    {"singular-plural",
     "house houses river rivers bridge bridges lamp lamps window windows letter letters hammer hammers basket baskets "
     "island islands village villages engine engines pencil pencils mirror mirrors candle candles blanket blankets "
     "ladder ladders bottle bottles castle castles tunnel tunnels pillow pillows",
     "a one this each single another every that either lone",
     "many several these few all those dozens numerous both various"},
};

constexpr std::string_view kFunctionWords =
    "the of and in to was is for on with as by at from it his her an are which or had not but be their has were they "
    "its who been would when will no there if more so about up into out two than some could time other only any new "
    "may such under between because through over while where before after during against within";

}  // namespace

std::span<const ClassWords> class_words() {
  return kClasses;
}
std::span<const RelationWords> relation_words() {
  return kRelations;
}
std::string_view function_words() {
  return kFunctionWords;
}

}  // namespace streamvec::planted
