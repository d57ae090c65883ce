// .npz files.
#include "program/npz.h"

#include "engine/file.h"
#include "tests/fuzz/npy.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/zip.h"

namespace opwright::fuzz {
namespace {

std::string read_npz(std::string_view input) {
    return outcome_of({Code::input_unreadable, Code::output_unwritable}, [input] {
        const auto arrays = host::read_npz("the input file x.npz", input);
        host::write_npz("y.npz", {arrays.begin(), arrays.end()});
        const auto again = host::read_npz("the input file y.npz", host::read_all(host::open_to_read("y.npz").number()));
        require(again.size() == arrays.size(), "arrays are missing after they are written and read back");
        for (const auto& [name, array] : arrays)
            require(again.contains(name) && again.at(name).sizes() == array.sizes(),
                    "the array " + name + " changes when it is written and read back");
    });
}

std::string changed_npz(std::string input, Random& random) {
    const auto change = [](std::string bytes, const std::string&, Random& choice) {
        return changed_npy(std::move(bytes), choice);
    };
    return changed_zip(input, change, random);
}

}  // namespace

const Target npz{"npz", read_npz, changed_npz};

}  // namespace opwright::fuzz
