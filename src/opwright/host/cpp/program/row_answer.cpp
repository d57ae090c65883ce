#include "program/row_answer.h"

#include <string>
#include <string_view>

#include "engine/file.h"
#include "engine/reason.h"
#include "program/json_lines.h"

namespace opwright::host {
namespace {

std::string_view memory_of(const at::Tensor& tensor) {
    if (tensor.numel() == 0) return {};
    return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::string line_of_answer(const RowAnswer& answer, const Model& model) {
    nlohmann::ordered_json line{{"request", answer.request}, {"row", answer.row}};
    if (answer.error) {
        line["error"] = as_json(*answer.error);
    } else {
        line["outputs"] = nlohmann::ordered_json::array();
        for (size_t i = 0; i < answer.outputs.size(); ++i) {
            nlohmann::ordered_json output = as_json(model.outputs()[i].name, answer.outputs[i]);
            output["bytes"] = answer.outputs[i].nbytes();
            line["outputs"].push_back(std::move(output));
        }
        line["seconds"] = answer.seconds;
    }
    return line_of(line) + "\n";
}

}  // namespace

void write_answer(int file, const RowAnswer& answer, const Model& model) {
    std::string line;
    if (const auto unprintable =
            error_of(Code::internal, "the answer cannot be printed: ", [&] { line = line_of_answer(answer, model); })) {
        const RowAnswer instead{.request = answer.request, .row = answer.row, .error = unprintable};
        write_all(file, line_of_answer(instead, model));
        return;
    }
    // Small outputs are written with the line, because each write may wake the reader.
    constexpr size_t small = size_t{1} << 16;
    for (const at::Tensor& output : answer.outputs) {
        const std::string_view memory = memory_of(output);
        if (line.size() + memory.size() <= small) {
            line += memory;
            continue;
        }
        write_all(file, line);
        write_all(file, memory);
        line.clear();
    }
    write_all(file, line);
}

}  // namespace opwright::host
