#include "bundle/json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "opwright/host/error.h"

namespace opwright::host {
namespace {

// The manifest needs five levels.
constexpr size_t deepest = 8;

// A message quotes at most this many bytes of the manifest.
constexpr size_t longest_quote = 60;
// And at most this many bytes of the JSON library's message, which contains quotes itself.
constexpr size_t longest_reason = 200;

[[noreturn]] void refuse_text(const std::string& why) {
    throw Error(Code::manifest_invalid, "manifest.json is invalid: " + why);
}

std::string shortened(const std::string& text, size_t longest = longest_quote) {
    return text.size() > longest ? text.substr(0, longest - 3) + "..." : text;
}

// U+0000 to U+001F and U+007F to U+009F; the latter, except U+007F, are two bytes in UTF-8.
bool has_controls(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
        const auto letter = static_cast<unsigned char>(text[i]);
        const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : ' ');
        if (letter < 32 || letter == 127 || (letter == 0xc2 && next >= 0x80 && next < 0xa0)) return true;
    }
    return false;
}

// Checks what the parser does not: the nesting depth, and duplicate keys in an object.
class Form : public nlohmann::json::json_sax_t {
  public:
    Form(const FormLimits& limits, const FormFaults& refuse) : limits_(limits), refuse_(refuse) {}

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(size_t) override { return begin(); }
    bool start_array(size_t) override { return begin(); }
    bool end_object() override { return end(); }
    bool end_array() override { return end(); }
    bool key(string_t& name) override {
        if (!keys_.back().insert(name).second) refuse_.key_twice(name);
        if (keys_.back().size() > limits_.keys) refuse_.too_many_keys();
        return true;
    }
    bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

  private:
    bool begin() {
        keys_.emplace_back();
        if (keys_.size() > limits_.depth) refuse_.too_deep();
        return true;
    }
    bool end() {
        keys_.pop_back();
        return true;
    }

    FormLimits limits_;
    const FormFaults& refuse_;
    std::vector<std::set<std::string>> keys_;  // for each open array and object
};

}  // namespace

void check_form(std::string_view text, const FormLimits& limits, const FormFaults& refuse) {
    // In a separate pass, because the library's parser takes quadratic time with a callback.
    Form form(limits, refuse);
    nlohmann::json::sax_parse(text, &form);
}

nlohmann::json parse_json(std::string_view text) {
    using Json = nlohmann::json;
    check_form(
        text, {.depth = deepest},
        {.key_twice =
             [](const auto& key) { refuse_text("the key \"" + shortened(key) + "\" occurs twice in one object"); },
         .too_deep = [] { refuse_text("it nests deeper than " + std::to_string(deepest) + " levels"); }});
    try {
        return Json::parse(text);
    } catch (const Json::exception& error) {
        std::string why = error.what();
        why.erase(0, std::min(why.find("] ") + 2, why.size()));  // the library's name for the error
        refuse_text(shortened(why, longest_reason));
    }
}

void Value::refuse(const std::string& expected) const {
    const std::string found = json_.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    refuse_text(place_ + " is " + shortened(found) + "; expected " + expected);
}

void Value::has_keys(std::initializer_list<const char*> keys) const {
    if (!json_.is_object()) refuse("an object");
    const std::string inside = place_ == "it" ? "" : " in " + place_;
    for (const char* key : keys)
        if (!json_.contains(key)) refuse_text("\"" + std::string(key) + "\" is missing" + inside);
    for (const auto& [key, value] : json_.items())
        if (std::none_of(keys.begin(), keys.end(), [&key = key](const char* known) { return key == known; }))
            refuse_text("\"" + shortened(key) + "\"" + inside + " is unknown");
}

Value Value::at(const char* key) const {
    return {json_.at(key), place_ == "it" ? key : place_ + "." + key};
}

bool Value::is_null() const {
    return json_.is_null();
}

bool Value::is_object() const {
    return json_.is_object();
}

bool Value::boolean() const {
    if (!json_.is_boolean()) refuse("true or false");
    return json_.get<bool>();
}

int64_t Value::integer(int64_t least) const {
    const std::string expected = "an integer of at least " + std::to_string(least);
    if (!json_.is_number_integer()) refuse(expected);
    if (json_.is_number_unsigned() && json_.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
        refuse(expected);
    const auto value = json_.get<int64_t>();
    if (value < least) refuse(expected);
    return value;
}

double Value::any_number() const {
    if (!json_.is_number() || !std::isfinite(json_.get<double>())) refuse("a number");
    return json_.get<double>();
}

double Value::number() const {
    if (!json_.is_number() || !std::isfinite(json_.get<double>()) || json_.get<double>() < 0)
        refuse("a non-negative number");
    return json_.get<double>();
}

std::string Value::text(size_t longest) const {
    const std::string expected = "text of 1 to " + std::to_string(longest) + " bytes without control characters";
    if (!json_.is_string()) refuse(expected);
    const auto& value = json_.get_ref<const std::string&>();
    if (value.empty() || value.size() > longest || has_controls(value)) refuse(expected);
    return value;
}

std::string Value::one_of(std::initializer_list<const char*> known) const {
    std::string listed;
    for (const char* word : known) {
        if (json_.is_string() && json_.get_ref<const std::string&>() == word) return word;
        listed += (listed.empty() ? "\"" : " or \"") + std::string(word) + "\"";
    }
    refuse(listed);
}

std::vector<Value> Value::list(size_t longest) const {
    if (!json_.is_array() || json_.size() > longest)
        refuse("a list of at most " + std::to_string(longest) + " entries");
    std::vector<Value> values;
    for (size_t i = 0; i < json_.size(); ++i) values.emplace_back(json_[i], place_ + "[" + std::to_string(i) + "]");
    return values;
}

std::vector<std::pair<std::string, Value>> Value::entries() const {
    if (!json_.is_object()) refuse("an object");
    std::vector<std::pair<std::string, Value>> found;
    for (const auto& [key, value] : json_.items())
        found.emplace_back(key, Value(value, place_ + "[\"" + shortened(key) + "\"]"));
    return found;
}

}  // namespace opwright::host
