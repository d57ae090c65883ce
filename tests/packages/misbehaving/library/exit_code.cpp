#include <cstdlib>

#include "scaled.h"

namespace {

struct Ending {
    ~Ending() { std::_Exit(3); }
};
const Ending ending;

}  // namespace

OPWRIGHT_IMPL(misbehaving_library, CPU, m) {
    m.impl("scaled", OPWRIGHT_FN(scaled));
}
