// .npy files.
#include "program/npy.h"

#include <array>
#include <charconv>

#include "tests/fuzz/npy.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/text.h"

namespace opwright::fuzz {
namespace {

constexpr std::array<std::string_view, 34> npy_words{"'descr'",
                                                     "'fortran_order'",
                                                     "'shape'",
                                                     "'<f4'",
                                                     "'<f8'",
                                                     "'<i8'",
                                                     "'|b1'",
                                                     "'|u1'",
                                                     "'>f4'",
                                                     "'<c16'",
                                                     "'<f2'",
                                                     "'<U5'",
                                                     "'|O'",
                                                     "[('a', '<f4')]",
                                                     "True",
                                                     "False",
                                                     "()",
                                                     "(0,)",
                                                     "(1,)",
                                                     "(2, 3)",
                                                     "(-1,)",
                                                     "(0, 9223372036854775807)",
                                                     "(4294967296, 4294967296)",
                                                     "(1, 1, 1, 1, 1, 1, 1, 1)",
                                                     "'",
                                                     "\"",
                                                     "{",
                                                     "}",
                                                     ":",
                                                     ",",
                                                     "(",
                                                     ")",
                                                     " ",
                                                     "\n"};
constexpr size_t header_start = 10;

void require_same(const at::Tensor& found, const at::Tensor& wanted) {
    require(found.scalar_type() == wanted.scalar_type() && found.sizes() == wanted.sizes() &&
                std::string_view(static_cast<const char*>(found.const_data_ptr()), found.nbytes()) ==
                    std::string_view(static_cast<const char*>(wanted.const_data_ptr()), wanted.nbytes()),
            "an array changes when it is written and read back");
}

std::string read_npy(std::string_view input) {
    return outcome_of({Code::input_unreadable}, [input] {
        const at::Tensor tensor = host::read_npy("the input file x.npy", input);
        require_same(host::read_npy("what was written", host::write_npy(tensor)), tensor);
    });
}

// The product of the numbers between the parentheses.
size_t elements_in(std::string_view header) {
    const size_t open = header.find('(');
    size_t all = 1;
    for (size_t place = open == std::string_view::npos ? header.size() : open;
         place < header.size() && header[place] != ')'; ++place) {
        if (header[place] < '0' || header[place] > '9') continue;
        size_t size = 0;
        const auto [rest, error] = std::from_chars(header.data() + place, header.data() + header.size(), size);
        if (error != std::errc()) return 1;
        all *= size;
        place = static_cast<size_t>(rest - header.data()) - 1;
    }
    return all;
}

size_t bytes_of_element(std::string_view header) {
    const size_t place = header.find_first_of("<|>");
    if (place == std::string_view::npos || place + 2 >= header.size()) return 1;
    size_t size = 1;
    std::from_chars(header.data() + place + 2, header.data() + header.size(), size);
    return size;
}

}  // namespace

std::string changed_npy(std::string input, Random& random) {
    if (input.size() < header_start || random.one_in(6)) return changed_bytes(std::move(input), random);
    const size_t declared = static_cast<unsigned char>(input[8]) | static_cast<unsigned char>(input[9]) << 8;
    const size_t length = std::min(declared, input.size() - header_start);
    std::string header = input.substr(header_start, length), data = input.substr(header_start + length);
    if (random.one_in(5))
        data = changed_bytes(data, random);
    else
        header = changed_text(header, npy_words, random);
    // Only data of the correct size is read.
    const size_t size = elements_in(header) * bytes_of_element(header);
    if (!random.one_in(6) && size <= size_t{1} << 16) data.resize(size, '\1');
    std::string version = input.substr(6, 2);
    if (random.one_in(16)) version[0] = static_cast<char>(random.below(5));
    std::string lengths{static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8 & 255)};
    if (version[0] > 1) lengths.append(2, '\0');
    return input.substr(0, 6) + version + lengths + header + data;
}

const Target npy{"npy", read_npy, changed_npy};

}  // namespace opwright::fuzz
