// Sanitizes external text for one line on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace opwright::host {

// Control characters (including U+0080 to U+009F), line separators and bidirectional formatting characters become
// spaces; bytes that are not UTF-8 become question marks.
std::string in_one_line(std::string_view text);

}  // namespace opwright::host
