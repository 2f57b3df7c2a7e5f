#include "streamvec/source/chain_source.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

// Hands out `count` documents; what it saves of a cursor is longer than the cursor.
class Numbers : public Source {
 public:
  Numbers(int64_t count, std::string* committed) : count_(count), committed_(committed) {}

  Result<int64_t> read(int64_t count_max, Deadline, std::vector<Document>& out) override {
    int64_t count = 0;
    for (; count < count_max && next_ < count_; ++count, ++next_)
      out.push_back({std::to_string(next_), std::to_string(next_ + 1)});
    return count;
  }
  Status seek(const std::string& cursor) override {
    if (!cursor.empty() && !cursor.starts_with("saved ")) return error(Code::kInvalidArgument, "a short cursor");
    next_ = cursor.empty() ? 0 : std::stoll(cursor.substr(6));
    return {};
  }
  std::string saved(const std::string& cursor) const override { return "saved " + cursor; }
  Status commit(const std::string& cursor) override {
    *committed_ = cursor;
    return {};
  }
  Capabilities capabilities() const override { return {.lookback_s = static_cast<double>(count_)}; }
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return 0; }
  std::string name() const override { return "numbers"; }

 private:
  int64_t count_, next_ = 0;
  std::string* committed_;
};

class Chain : public testing::Test {
 protected:
  std::unique_ptr<ChainSource> make() {
    std::vector<std::unique_ptr<Source>> sources;
    for (int i = 0; i < 2; ++i) sources.push_back(std::make_unique<Numbers>(3 + i, &committed_[i]));
    return std::make_unique<ChainSource>(std::move(sources));
  }
  std::vector<Document> read_all(Source& source) {
    std::vector<Document> all;
    while (*source.read(2, Deadline::never(), all) > 0) {
    }
    return all;
  }
  std::string committed_[2];
};

TEST_F(Chain, GoesOnAfterAnyDocumentFromWhatItsMemberSaved) {
  const std::vector<Document> all = read_all(*make());
  ASSERT_EQ(all.size(), 7u);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto chain = make();
    ASSERT_TRUE(chain->seek(chain->saved(all[i].cursor)).ok()) << i;
    const std::vector<Document> rest = read_all(*chain);
    ASSERT_EQ(rest.size(), all.size() - i - 1);
    for (size_t j = 0; j < rest.size(); ++j) EXPECT_EQ(rest[j].text, all[i + 1 + j].text);
  }
}

TEST_F(Chain, TellsTheMemberWhatIsSafe) {
  const auto chain = make();
  const std::vector<Document> all = read_all(*chain);
  ASSERT_TRUE(chain->commit(all[4].cursor).ok());
  EXPECT_EQ(committed_[0], "");
  EXPECT_EQ(committed_[1], "2");
}

TEST_F(Chain, CanDoWhatAllItsMembersCan) {
  EXPECT_EQ(make()->capabilities().lookback_s, 3);
}

}  // namespace
}  // namespace streamvec
