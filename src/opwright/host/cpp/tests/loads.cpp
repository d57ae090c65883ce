// Loads one bundle after another in one process. Each line of standard input is a folder; each line of standard output
// is the result, "loaded" or the name of the code and the message.
//
//     loads [--foreign-locale]      in a locale that writes 1.000 and 0,5; also verifies each bundle
#include <clocale>
#include <iostream>
#include <locale>
#include <string>

#include "opwright/host.h"

namespace {

class Grouped : public std::numpunct<char> {
  protected:
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
};

}  // namespace

int main(int argc, char**) {
    const bool is_foreign = argc > 1;
    if (is_foreign) {
        std::locale::global(std::locale(std::locale::classic(), new Grouped));
        for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
            if (std::setlocale(LC_ALL, name)) break;
    }
    for (std::string folder; std::getline(std::cin, folder);) {
        try {
            const auto model = opwright::Model::load(folder);
            if (is_foreign) model.verify();
            std::cout << "loaded" << std::endl;
        } catch (const opwright::Error& error) {
            std::cout << opwright::name_of(error.code()) << ' ' << error.what() << std::endl;
        }
    }
}
