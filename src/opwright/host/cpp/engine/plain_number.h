// Numbers as text, and text through streams, that are the same in every locale.
#pragma once

#include <array>
#include <charconv>
#include <locale>
#include <sstream>
#include <string>

namespace opwright::host {

// A program may have set a locale in which 100000 is 100.000: streams take it when they are made.
class PlainStream : public std::ostringstream {
  public:
    PlainStream() { imbue(std::locale::classic()); }
};

// As printf's %g has it, or with `places` digits behind the point.
inline std::string plain_number(double value, int places = -1) {
    std::array<char, 512> text{};  // the largest number has 309 digits before the point
    char* const end = text.data() + text.size();
    const auto [last, error] = places < 0 ? std::to_chars(text.data(), end, value, std::chars_format::general, 6)
                                          : std::to_chars(text.data(), end, value, std::chars_format::fixed, places);
    return error == std::errc() ? std::string(text.data(), last) : "?";
}

}  // namespace opwright::host
