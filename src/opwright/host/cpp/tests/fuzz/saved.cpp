// Archives that PyTorch reads for the host: goldens, models and packages.
#include "tests/fuzz/saved.h"

#include <array>

#include "engine/archive.h"
#include "engine/file.h"
#include "engine/saved_model.h"
#include "tests/fuzz/json.h"
#include "tests/fuzz/pickle.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/text.h"
#include "tests/fuzz/zip.h"

namespace opwright::fuzz {
namespace {

constexpr std::array<std::string_view, 40> archive_words{"AOTI_DEVICE_KEY",
                                                         "cpu",
                                                         "cuda",
                                                         "AOTI_CPU_ISA",
                                                         "AOTI_PLATFORM",
                                                         "AOTI_MACHINE",
                                                         "AOTI_COMPUTE_CAPABILITY",
                                                         "config",
                                                         "weights",
                                                         "path_name",
                                                         "payload_meta",
                                                         "use_pickle",
                                                         "is_param",
                                                         "tensor_meta",
                                                         "dtype",
                                                         "sizes",
                                                         "as_int",
                                                         "strides",
                                                         "storage_offset",
                                                         "layout",
                                                         "device",
                                                         "type",
                                                         "index",
                                                         "requires_grad",
                                                         "data/weights/weight_0",
                                                         "../x",
                                                         "def",
                                                         "forward",
                                                         "self",
                                                         "Tensor",
                                                         "class Net(Module):\n",
                                                         "return",
                                                         "while True:\n",
                                                         "  ",
                                                         "torch.ones",
                                                         "ops.aten.mul",
                                                         "List[int]",
                                                         "__torch__.Net",
                                                         "{}",
                                                         ""};

template <typename Read>
std::string outcome_of_file(const std::string& path, std::string_view input, std::initializer_list<Code> codes,
                            const Read& read) {
    host::write_all(host::Descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)).number(),
                    input);
    return outcome_of(codes, [&] { read(path); });
}

std::string read_golden(std::string_view input) {
    return outcome_of_file("golden.pt", input, {Code::golden_differs}, [](const std::string& path) {
        const c10::IValue value = host::read_archive("golden", path, Code::golden_differs);
        try {
            std::vector<at::Tensor> tensors;
            host::collect_tensors(value, tensors);
        } catch (const std::runtime_error& error) {  // which `Model::verify` converts to this error
            throw Error(Code::golden_differs, error.what());
        }
    });
}

std::string read_model(std::string_view input) {
    return outcome_of_file("model.pt", input, {Code::model_invalid, Code::operator_missing},
                           [](const std::string& path) { host::load_torchscript(path); });
}

std::string read_package(std::string_view input) {
    return outcome_of_file("model.pt2", input, {Code::model_invalid, Code::operator_missing},
                           [](const std::string& path) { host::load_package(path); });
}

std::string changed_record(std::string bytes, const std::string& name, Random& random) {
    if (name.ends_with(".pkl")) return changed_pickle(std::move(bytes), random);
    if (name.ends_with(".json")) return changed_json(std::move(bytes), archive_words, random);
    if (name.ends_with(".so")) return bytes;  // the system's loader executes it
    if (name.ends_with(".py")) {
        // Source code is nested, and PyTorch's parser uses the stack for each level of brackets.
        constexpr size_t deepest = 500;
        std::string changed = changed_text(bytes, archive_words, random);
        return nesting_of(changed) > deepest ? bytes : changed;
    }
    return changed_bytes(std::move(bytes), random);
}

}  // namespace

std::string changed_archive(std::string input, Random& random) {
    return changed_zip(input, changed_record, random);
}

const Target golden{"golden", read_golden, changed_archive};
const Target model{"model", read_model, changed_archive};
const Target package{"package", read_package, changed_archive};

}  // namespace opwright::fuzz
