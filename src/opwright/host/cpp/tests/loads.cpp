// Loads one bundle after the other in one process: the folder comes on a line of standard input, and what became of it
// goes out on one of standard output, "loaded" or the name of the code and the message.
#include <iostream>
#include <string>

#include "opwright/host.h"

int main() {
    for (std::string folder; std::getline(std::cin, folder);) {
        try {
            opwright::Model::load(folder);
            std::cout << "loaded" << std::endl;
        } catch (const opwright::Error& error) {
            std::cout << opwright::name_of(error.code()) << ' ' << error.what() << std::endl;
        }
    }
}
