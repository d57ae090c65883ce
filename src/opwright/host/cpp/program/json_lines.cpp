#include "program/json_lines.h"

#include "engine/dtypes.h"

namespace opwright::host {

std::string line_of(const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::ordered_json as_json(const Error& error) {
    return {{"code", static_cast<int>(error.code())}, {"kind", name_of(error.code())}, {"message", error.what()}};
}

nlohmann::ordered_json as_json(const std::string& name, const at::Tensor& output) {
    return {{"name", name}, {"dtype", dtype_name(output.scalar_type())}, {"shape", output.sizes().vec()}};
}

}  // namespace opwright::host
