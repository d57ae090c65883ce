// Text from elsewhere, made fit for a line on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace opwright::host {

// Control characters, those of U+0080 to U+009F too, line separators and marks that turn the direction of writing
// become spaces; bytes that are not UTF-8 become question marks.
std::string in_one_line(std::string_view text);

}  // namespace opwright::host
