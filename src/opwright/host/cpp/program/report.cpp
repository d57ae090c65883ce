#include "program/report.h"

#include <ATen/ops/topk.h>

#include <algorithm>
#include <cmath>
#include <iomanip>

#include "engine/dtypes.h"
#include "engine/libraries.h"
#include "engine/one_line.h"
#include "engine/plain_number.h"
#include "engine/reason.h"
#include "program/json_lines.h"

namespace opwright::host {
namespace {

using Json = nlohmann::ordered_json;

struct Top {
    at::Tensor values, places;  // (rows, k)
};

Top top_of(const at::Tensor& output, int wanted) {
    const at::Tensor rows = output.cpu().to(at::kDouble).reshape({-1, output.dim() ? output.size(-1) : 1});
    const auto [values, places] = rows.topk(std::min<int64_t>(wanted, rows.size(1)));
    return {values.contiguous(), places.contiguous()};
}

bool has_rows(const at::Tensor& output) {
    return output.numel() > 0 && !output.is_complex() && output.layout() == at::kStrided;
}

Json top_as_json(const at::Tensor& output, int wanted) {
    const Top top = top_of(output, wanted);
    Json rows = Json::array();
    for (int64_t row = 0; row < top.values.size(0); ++row) {
        Json entries = Json::array();
        for (int64_t i = 0; i < top.values.size(1); ++i)
            entries.push_back(
                {{"index", top.places[row][i].item().toLong()}, {"value", top.values[row][i].item().toDouble()}});
        rows.push_back(entries);
    }
    return rows;
}

void print_top(std::ostream& out, const at::Tensor& output, int wanted) {
    const Top top = top_of(output, wanted);
    for (int64_t row = 0; row < top.values.size(0); ++row) {
        if (top.values.size(0) > 1) out << "  row " << row << '\n';
        for (int64_t i = 0; i < top.values.size(1); ++i)
            out << "  " << std::setw(6) << top.places[row][i].item().toLong() << "  "
                << plain_number(top.values[row][i].item().toDouble()) << '\n';
    }
}

// The value that a fraction `part` of all values does not exceed.
double percentile(const std::vector<double>& sorted, double part) {
    const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size())));
    return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

std::string milliseconds(double seconds) {
    return plain_number(seconds * 1e3, 3) + " ms";
}

Json answer_as_json(const Request& request, const Answer& answer, const Model& model, const Options& options) {
    Json line = Json::object();
    if (!request.name.empty()) line["request"] = request.name;
    if (answer.error) {
        line["error"] = as_json(*answer.error);
        return line;
    }
    line["outputs"] = Json::array();
    for (size_t i = 0; i < answer.outputs.size(); ++i) {
        const at::Tensor& output = answer.outputs[i];
        Json entry = as_json(model.outputs()[i].name, output);
        if (options.top_k && has_rows(output)) entry["top"] = top_as_json(output, options.top_k);
        line["outputs"].push_back(entry);
    }
    if (!request.output.empty()) line["written"] = request.output;
    if (options.repeat > 1) line["repeats"] = answer.repeats;
    return line;
}

std::string answer_as_text(const Request& request, const Answer& answer, const Model& model, const Options& options) {
    PlainStream out;
    if (!request.name.empty()) out << in_one_line(request.name) << '\n';
    for (size_t i = 0; i < answer.outputs.size(); ++i) {
        const at::Tensor& output = answer.outputs[i];
        out << in_one_line(model.outputs()[i].name) << ": " << dtype_name(output.scalar_type()) << ' ' << output.sizes()
            << '\n';
        if (options.top_k && has_rows(output)) print_top(out, output, options.top_k);
    }
    if (!request.output.empty()) out << "written to " << in_one_line(request.output) << '\n';
    if (!answer.repeats) out << "further runs returned different bits\n";
    return out.str();
}

}  // namespace

Report::Report(const Options& options) : options_(options) {
    if (options.json == "-") {
        json_.emplace(take_standard_output());
        return;
    }
    text_.emplace(Descriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)));
    if (options.json.empty()) return;
    constexpr mode_t as_the_umask_leaves = 0666;
    Descriptor file(open(options.json.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, as_the_umask_leaves));
    if (!file)
        throw Error(Code::output_unwritable, "--json " + options.json +
                                                 " cannot be written: pass a file in an existing folder, or - for "
                                                 "standard output");
    json_.emplace(std::move(file));
}

int Report::json_descriptor() const {
    return json_ ? json_->descriptor() : -1;
}

void Report::answer(const Request& request, const Answer& answer, const Model& model) {
    const std::string json = json_ ? line_of(answer_as_json(request, answer, model, options_)) : "";
    const std::string text = text_ && !answer.error ? answer_as_text(request, answer, model, options_) : "";
    if (json_) *json_ << json << std::endl;
    if (answer.error) print_failure((request.name.empty() ? "" : request.name + ": ") + answer.error->what());
    if (text_) *text_ << text << std::flush;
}

void Report::figures(const Runs& runs, double load_seconds, double first_result_seconds) {
    std::vector<double> sorted = runs.seconds;
    std::sort(sorted.begin(), sorted.end());
    if (json_) {
        Json line{{"runs", sorted.size()},
                  {"load_seconds", load_seconds},
                  {"first_result_seconds", first_result_seconds},
                  {"wall_seconds", runs.wall_seconds},
                  {"resident_bytes_before", runs.resident_bytes_before},
                  {"resident_bytes_after", runs.resident_bytes_after},
                  {"python_mapped", python_is_mapped()}};
        if (!sorted.empty())
            line["latency_seconds"] = {{"p50", percentile(sorted, 0.5)},
                                       {"p90", percentile(sorted, 0.9)},
                                       {"p99", percentile(sorted, 0.99)},
                                       {"max", sorted.back()}};
        *json_ << line_of(line) << std::endl;
    }
    if (text_ && options_.repeat > 1 && !sorted.empty())
        *text_ << sorted.size() << " runs: p50 " << milliseconds(percentile(sorted, 0.5)) << ", p90 "
               << milliseconds(percentile(sorted, 0.9)) << ", p99 " << milliseconds(percentile(sorted, 0.99))
               << ", max " << milliseconds(sorted.back()) << std::endl;
}

void Report::ready(const Model& model, double load_seconds) {
    if (json_)
        *json_ << line_of({{"ready", {{"load_seconds", load_seconds}, {"device", model.device()}}}}) << std::endl;
}

void Report::verified(const Model& model, double farthest) {
    if (json_)
        *json_ << line_of({{"verified", options_.bundle}, {"farthest", farthest}, {"device", model.device()}})
               << std::endl;
    if (text_)
        *text_ << in_one_line(options_.bundle) << " is OK: the largest relative deviation from the goldens is "
               << plain_number(farthest) << std::endl;
}

void Report::require_written() const {
    const auto require = [](const std::optional<DescriptorStream>& out, const std::string& name) {
        if (out && !*out) throw Error(Code::output_unwritable, name + " cannot be written: is the disk full?");
    };
    require(json_, options_.json == "-" ? "standard output" : "--json " + options_.json);
    require(text_, "standard output");
}

void Report::failed(const Error& error) {
    if (json_) *json_ << line_of({{"error", as_json(error)}}) << std::endl;
    print_failure(error.what());
}

}  // namespace opwright::host
