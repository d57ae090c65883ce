// Locale-independent formatting of numbers and streams.
#pragma once

#include <array>
#include <charconv>
#include <locale>
#include <sstream>
#include <string>

namespace opwright::host {

// A program may have set a locale in which 100000 is 100.000, which new streams adopt.
class PlainStream : public std::ostringstream {
  public:
    PlainStream() { imbue(std::locale::classic()); }
};

// As with printf's %g, or with `places` digits after the decimal point.
inline std::string plain_number(double value, int places = -1) {
    std::array<char, 512> text{};  // the largest number has 309 digits before the decimal point
    char* const end = text.data() + text.size();
    const auto [last, error] = places < 0 ? std::to_chars(text.data(), end, value, std::chars_format::general, 6)
                                          : std::to_chars(text.data(), end, value, std::chars_format::fixed, places);
    return error == std::errc() ? std::string(text.data(), last) : "?";
}

}  // namespace opwright::host
