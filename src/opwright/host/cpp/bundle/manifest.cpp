#include "bundle/manifest.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "bundle/json.h"
#include "bundle/limits.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

constexpr std::string_view ptx = "+PTX";

bool is_plain(char letter) {
    const auto is_in = [letter](char first, char last) { return first <= letter && letter <= last; };
    return is_in('a', 'z') || is_in('A', 'Z') || is_in('0', '9') || std::string_view("._+-").find(letter) < 4;
}

// A relative path that stays inside the folder.
std::string path(const Value& value) {
    const std::string whole = value.text();
    std::string part;
    for (const char letter : whole + "/") {
        if (letter != '/') {
            part += letter;
            continue;
        }
        if (part.empty() || part == "." || part == ".." || !std::all_of(part.begin(), part.end(), is_plain))
            throw Error(Code::path_outside, "manifest.json names the path '" + whole + "' at " + value.place() +
                                                "; expected one inside the bundle, such as lib/ops.so");
        part.clear();
    }
    return whole;
}

// Two numbers separated by a point.
std::optional<Release> numbers(const std::string& whole) {
    const auto dot = whole.find('.');
    const auto is_number = [](std::string_view digits) {
        return !digits.empty() && digits.size() < 5 &&
               std::all_of(digits.begin(), digits.end(), [](char digit) { return '0' <= digit && digit <= '9'; });
    };
    if (dot == std::string::npos || !is_number(whole.substr(0, dot)) || !is_number(whole.substr(dot + 1)))
        return std::nullopt;
    Release found;
    std::from_chars(whole.data(), whole.data() + dot, found.major);
    std::from_chars(whole.data() + dot + 1, whole.data() + whole.size(), found.minor);
    return found;
}

Release release(const Value& value) {
    const std::optional<Release> found = numbers(value.text());
    if (!found) value.refuse("a release such as \"2.13\"");
    return *found;
}

Architecture architecture(const Value& value) {
    std::string whole = value.text();
    const bool with_ptx = whole.ends_with(ptx);
    if (with_ptx) whole.resize(whole.size() - ptx.size());
    const std::optional<Release> found = numbers(whole);
    if (!found) value.refuse("a compute capability such as \"9.0\" or \"9.0+PTX\"");
    return {*found, with_ptx};
}

Releases releases(const Value& value) {
    Releases found{release(value.at("oldest")), std::nullopt};
    if (!value.at("newest").is_null()) found.newest = release(value.at("newest"));
    if (found.newest && *found.newest < found.oldest)
        value.at("newest").refuse("null, or a release no older than oldest");
    return found;
}

Dimension fixed_dimension(const Value& value) {
    const int64_t size = value.integer(0);
    return {size, size};
}

Dimension dimension(const Value& value) {
    if (!value.is_object()) return fixed_dimension(value);
    value.has_keys({"min", "max"});
    Dimension found{value.at("min").integer(0), std::nullopt};
    if (!value.at("max").is_null()) found.max = value.at("max").integer(found.min);
    return found;
}

std::array<double, 3> three(const Value& value) {
    const std::vector<Value> numbers = value.list();
    if (numbers.size() != 3) value.refuse("three numbers");
    return {numbers[0].any_number(), numbers[1].any_number(), numbers[2].any_number()};
}

ImageRecipe image_recipe(const Value& value) {
    value.has_keys({"resize", "crop", "mean", "std"});
    const std::vector<Value> crop = value.at("crop").list();
    if (crop.size() != 2) value.at("crop").refuse("a height and a width");
    ImageRecipe recipe{value.at("resize").integer(1), crop[0].integer(1), crop[1].integer(1), three(value.at("mean")),
                       three(value.at("std"))};
    if (std::max(recipe.crop_height, recipe.crop_width) > recipe.resize || recipe.resize > limits::resize)
        value.refuse("a crop no larger than resize, and a resize of at most " + std::to_string(limits::resize));
    if (std::count(recipe.std.begin(), recipe.std.end(), 0.0)) value.at("std").refuse("three nonzero numbers");
    return recipe;
}

Manifest::Library library(const Value& value) {
    value.has_keys({"file", "namespaces", "oldest", "newest", "operators"});
    Manifest::Library found{path(value.at("file")), {}, releases(value), {}};
    for (const Value& name : value.at("namespaces").list()) found.namespaces.push_back(name.text());
    for (const Value& entry : value.at("operators").list()) {
        entry.has_keys({"schema", "called"});
        found.operators.push_back({entry.at("schema").text(limits::schema_bytes), entry.at("called").boolean()});
    }
    return found;
}

Manifest::Input input(const Value& value) {
    value.has_keys({"name", "dtype", "dims", "image"});
    Manifest::Input found{value.at("name").text(), value.at("dtype").text(), {}, std::nullopt};
    for (const Value& dim : value.at("dims").list(limits::rank)) found.dims.push_back(dimension(dim));
    if (!value.at("image").is_null()) found.image = image_recipe(value.at("image"));
    return found;
}

// `places`: the index of each input, by name.
Manifest::InputDim input_dim(const Value& value, const std::vector<Manifest::Input>& inputs,
                             const std::map<std::string, size_t>& places) {
    value.has_keys({"input", "dim"});
    const auto found = places.find(value.at("input").text());
    if (found == places.end()) value.at("input").refuse("the name of an input");
    const auto dim = static_cast<size_t>(value.at("dim").integer(0));
    if (dim >= inputs[found->second].dims.size()) value.at("dim").refuse("a dimension of that input");
    return {found->second, dim};
}

Manifest::Output output(const Value& value) {
    value.has_keys({"name", "dtype", "dims"});
    Manifest::Output found{value.at("name").text(), value.at("dtype").text(), {}};
    for (const Value& dim : value.at("dims").list(limits::rank))
        found.dims.push_back(dim.is_null() ? std::nullopt : std::optional(fixed_dimension(dim)));
    return found;
}

Manifest::File file(const Value& value) {
    value.has_keys({"bytes", "sha256"});
    const std::string digest = value.at("sha256").text();
    const bool is_hex = std::all_of(digest.begin(), digest.end(), [](char letter) {
        return ('0' <= letter && letter <= '9') || ('a' <= letter && letter <= 'f');
    });
    if (digest.size() != 64 || !is_hex) value.at("sha256").refuse("64 lowercase hexadecimal digits");
    return {value.at("bytes").integer(0), digest};
}

void require_distinct(const Value& value, const std::vector<std::string>& names) {
    if (std::set(names.begin(), names.end()).size() != names.size()) value.refuse("entries with distinct names");
}

// A file that the manifest names elsewhere must have a digest, or it would never be checked.
void require_listed(const Manifest& manifest, const std::string& name) {
    if (!manifest.files.contains(name))
        throw Error(Code::manifest_invalid, "manifest.json is invalid: " + name +
                                                " is not in files; expected its "
                                                "bytes and sha256 there");
}

}  // namespace

Manifest parse_manifest(std::string_view text) {
    const nlohmann::json json = parse_json(text);
    const Value all(json, "it");
    // Checked first, because a later format may have other keys.
    if (all.is_object() && json.contains("format") && all.at("format").integer(0) != limits::format)
        throw Error(Code::format_unknown, "the bundle has the format " + json["format"].dump() +
                                              ", but this host reads format " + std::to_string(limits::format) +
                                              ": ship the model again, or use the host of the opwright release that "
                                              "shipped it");
    all.has_keys({"format", "opwright", "model", "torch", "device", "cpu", "cuda", "libraries", "inputs", "equal_dims",
                  "outputs", "tolerance", "goldens", "host_program", "files"});
    Manifest manifest;
    manifest.opwright = all.at("opwright").text();
    const Value model = all.at("model");
    model.has_keys({"file", "kind", "precision"});
    manifest.model_file = path(model.at("file"));
    const bool compiled = model.at("kind").one_of({"torchscript", "aoti"}) == "aoti";
    manifest.model_kind = compiled ? Manifest::Kind::aoti : Manifest::Kind::torchscript;
    manifest.precision = model.at("precision").one_of({"float32", "bfloat16"});
    const Value torch = all.at("torch");
    torch.has_keys({"version", "oldest", "newest"});
    manifest.torch_version = torch.at("version").text();
    manifest.torch = releases(torch);
    manifest.device = all.at("device").one_of({"cpu", "cuda"});
    const Value cpu = all.at("cpu");
    cpu.has_keys({"architecture", "features"});
    manifest.architecture = cpu.at("architecture").text();
    for (const Value& feature : cpu.at("features").list()) manifest.cpu_features.push_back(feature.text());
    if (const Value cuda = all.at("cuda"); !cuda.is_null()) {
        cuda.has_keys({"architectures"});
        for (const Value& one : cuda.at("architectures").list())
            manifest.cuda_architectures.push_back(architecture(one));
    }
    std::vector<std::string> names;
    for (const Value& one : all.at("libraries").list()) manifest.libraries.push_back(library(one));
    for (const Value& one : all.at("inputs").list()) {
        manifest.inputs.push_back(input(one));
        names.push_back(manifest.inputs.back().name);
    }
    require_distinct(all.at("inputs"), names);
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < names.size(); ++i) places[names[i]] = i;
    for (const Value& group : all.at("equal_dims").list()) {
        manifest.equal_dims.emplace_back();
        for (const Value& one : group.list())
            manifest.equal_dims.back().push_back(input_dim(one, manifest.inputs, places));
    }
    names.clear();
    for (const Value& one : all.at("outputs").list()) {
        manifest.outputs.push_back(output(one));
        names.push_back(manifest.outputs.back().name);
    }
    require_distinct(all.at("outputs"), names);
    manifest.tolerance = all.at("tolerance").number();
    for (const Value& one : all.at("goldens").list()) manifest.goldens.push_back(path(one));
    if (const Value program = all.at("host_program"); !program.is_null()) {
        manifest.host_program = path(program);
        // The launcher checks only the digests of host/, and starts this file.
        if (!manifest.host_program->starts_with("host/")) program.refuse("null, or a file in host/");
    }
    for (const auto& [name, entry] : all.at("files").entries()) {
        const nlohmann::json key = name;
        manifest.files[path(Value(key, entry.place()))] = file(entry);
    }
    require_listed(manifest, manifest.model_file);
    for (const Manifest::Library& one : manifest.libraries) require_listed(manifest, one.file);
    for (const std::string& name : manifest.goldens) require_listed(manifest, name);
    if (manifest.host_program) require_listed(manifest, *manifest.host_program);
    return manifest;
}

std::string to_string(Release release) {
    return std::to_string(release.major) + "." + std::to_string(release.minor);
}

std::string to_string(const Architecture& architecture) {
    return to_string(architecture.release) + std::string(architecture.with_ptx ? ptx : "");
}

}  // namespace opwright::host
