#include "program/zip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>

#include "tests/fuzz/text.h"
#include "tests/fuzz/zip.h"

namespace opwright::fuzz {
namespace {

constexpr size_t most_entries = 64, most_bytes = size_t{1} << 22;

constexpr std::array<std::string_view, 13> name_words{".npy", "",  "../",  "/",      "..",      "a/b", "\\",
                                                      "C:",   "é", "\xff", "data/0", "version", ".so"};

// How an entry is written.
struct Form {
    bool compressed = false;
    bool zip64 = false;
    // A wrong number in the archive: its index, and what is added to it.
    size_t wrong = std::string::npos;
    uint64_t by = 0;
};

class Writer {
  public:
    explicit Writer(const Form& form) : form_(form) {}

    void number(uint64_t value, int bytes) {
        if (place_++ == form_.wrong) value += form_.by;
        for (int i = 0; i < bytes; ++i) whole += static_cast<char>(value >> 8 * i & 255);
    }
    void text(std::string_view what) { whole += what; }
    size_t numbers() const { return place_; }

    std::string whole;

  private:
    const Form& form_;
    size_t place_ = 0;
};

std::string deflated(const std::string& bytes) {
    z_stream stream = {};
    deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY);
    std::string packed(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    deflate(&stream, Z_FINISH);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

struct Facts {
    uint64_t crc = 0, packed = 0, size = 0, start = 0;
};

// .ZIP File Format Specification, 4.3.7 and 4.3.12: the common start of an entry's two headers.
void write_header(Writer& out, const Entry& entry, const Facts& facts, const Form& form, bool central) {
    constexpr uint64_t in_extra = 0xffffffff;
    out.number(central ? 0x02014b50 : 0x04034b50, 4);
    if (central) out.number(45, 2);
    out.number(form.zip64 ? 45 : 20, 2);
    out.number(0, 2);
    out.number(form.compressed ? Z_DEFLATED : 0, 2);
    out.number(0, 4);
    out.number(facts.crc, 4);
    out.number(form.zip64 ? in_extra : facts.packed, 4);
    out.number(form.zip64 ? in_extra : facts.size, 4);
    out.number(entry.name.size(), 2);
    out.number(form.zip64 ? (central ? 28 : 20) : 0, 2);
    if (central) {
        out.number(0, 2);
        out.number(0, 2);
        out.number(0, 2);
        out.number(0, 4);
        out.number(form.zip64 ? in_extra : facts.start, 4);
    }
    out.text(entry.name);
    if (!form.zip64) return;
    out.number(1, 2);
    out.number(central ? 24 : 16, 2);
    out.number(facts.size, 8);
    out.number(facts.packed, 8);
    if (central) out.number(facts.start, 8);
}

// Returns the number of numbers written.
size_t write_archive(const std::vector<Entry>& entries, const Form& form, std::string& archive) {
    Writer out(form);
    std::vector<Facts> all;
    for (const Entry& entry : entries) {
        const std::string packed = form.compressed ? deflated(entry.bytes) : entry.bytes;
        const auto crc = crc32(0, reinterpret_cast<const Bytef*>(entry.bytes.data()), entry.bytes.size());
        all.push_back({crc, packed.size(), entry.bytes.size(), out.whole.size()});
        write_header(out, entry, all.back(), form, false);
        out.text(packed);
    }
    const size_t start = out.whole.size();
    for (size_t i = 0; i < entries.size(); ++i) write_header(out, entries[i], all[i], form, true);
    const size_t end = out.whole.size(), size = end - start;
    if (form.zip64) {
        out.number(0x06064b50, 4);
        out.number(44, 8);
        out.number(45, 2);
        out.number(45, 2);
        for (int i = 0; i < 2; ++i) out.number(0, 4);
        for (int i = 0; i < 2; ++i) out.number(entries.size(), 8);
        out.number(size, 8);
        out.number(start, 8);
        out.number(0x07064b50, 4);
        out.number(0, 4);
        out.number(end, 8);
        out.number(1, 4);
    }
    out.number(0x06054b50, 4);
    for (int i = 0; i < 2; ++i) out.number(0, 2);
    for (int i = 0; i < 2; ++i) out.number(form.zip64 ? 0xffff : entries.size(), 2);
    out.number(form.zip64 ? 0xffffffff : size, 4);
    out.number(form.zip64 ? 0xffffffff : start, 4);
    out.number(0, 2);
    archive = std::move(out.whole);
    return out.numbers();
}

void change_entries(std::vector<Entry>& entries, Random& random) {
    const size_t place = random.below(entries.size());
    switch (random.below(5)) {
        case 0:
            entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(place));
            break;
        case 1: {
            const Entry copy = entries[place];
            entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(random.below(entries.size() + 1)), copy);
            break;
        }
        case 2:
            std::swap(entries[place], random.one_of(entries));
            break;
        case 3:
            entries[place].bytes = random.one_of(entries).bytes;
            break;
        default:
            entries[place].name = changed_text(entries[place].name, name_words, random);
            entries[place].name.resize(std::min<size_t>(entries[place].name.size(), 2000));
    }
}

}  // namespace

std::optional<std::vector<Entry>> unzipped(std::string_view archive) {
    host::ZipSource source{archive};
    const std::unique_ptr<void, int (*)(unzFile)> file(host::open_zip(source), unzClose);
    if (!file) return std::nullopt;
    std::vector<Entry> entries;
    int state = unzGoToFirstFile(file.get());
    for (; state == UNZ_OK && entries.size() < most_entries; state = unzGoToNextFile(file.get())) {
        std::string name(4096, '\0'), bytes(1 << 16, '\0');
        unz_file_info64 info = {};
        if (unzGetCurrentFileInfo64(file.get(), &info, name.data(), name.size(), nullptr, 0, nullptr, 0) != UNZ_OK ||
            unzOpenCurrentFile(file.get()) != UNZ_OK)
            return std::nullopt;
        name.resize(std::min<size_t>(info.size_filename, name.size()));
        Entry& entry = entries.emplace_back(Entry{std::move(name), ""});
        int size = 0;
        while (entry.bytes.size() < most_bytes &&
               (size = unzReadCurrentFile(file.get(), bytes.data(), static_cast<unsigned>(bytes.size()))) > 0)
            entry.bytes.append(bytes, 0, static_cast<size_t>(size));
        if (unzCloseCurrentFile(file.get()) != UNZ_OK || size != 0) return std::nullopt;
    }
    if (state != UNZ_END_OF_LIST_OF_FILE) return std::nullopt;
    return entries;
}

std::string zipped(const std::vector<Entry>& entries) {
    std::string archive;
    write_archive(entries, {}, archive);
    return archive;
}

std::string changed_zip(const std::string& archive, const Change& change, Random& random) {
    std::optional<std::vector<Entry>> entries = unzipped(archive);
    if (!entries || entries->empty() || random.one_in(12)) return changed_bytes(archive, random);
    Form form{random.one_in(4), random.one_in(4)};
    std::string changed;
    switch (random.below(6)) {
        case 0:
            change_entries(*entries, random);
            break;
        case 1: {
            constexpr std::array<uint64_t, 10> steps{1, 2, 8, 255, 256, 65535, 65536, 0x7fffffff, 0x80000000, ~0ULL};
            form.wrong = random.below(write_archive(*entries, form, changed));
            form.by = random.one_in(8) ? random.bits() : random.one_of(steps);
            if (random.one_in(2)) form.by = -form.by;
            break;
        }
        default: {
            Entry& entry = random.one_of(*entries);
            entry.bytes = change(std::move(entry.bytes), entry.name, random);
        }
    }
    write_archive(*entries, form, changed);
    return changed;
}

}  // namespace opwright::fuzz
