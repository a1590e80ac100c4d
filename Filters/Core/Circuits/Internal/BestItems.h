#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace atlas
{

/// The best of many items, by their order IsBefore. The outcome does not depend on the order in
/// which they are added.
template<class Item>
class BestItems
{
public:
  /// Keeps `count` items, at least 1.
  explicit BestItems(std::size_t count)
    : Count(count)
  {
  }

  void Add(const Item& item)
  {
    if (this->IsFull() && !item.IsBefore(this->Worst()))
    {
      return;
    }
    this->Items.push_back(item);
    if (this->Items.size() >= 2 * this->Count)
    {
      this->Shrink();
    }
  }

  /// Whether there is a worst item that others must be better than.
  bool IsFull() const { return this->HasWorst; }

  /// The last of the best items as of the last Shrink.
  const Item& Worst() const { return this->Last; }

  /// Drops all but the best items.
  void Shrink()
  {
    if (this->Items.size() < this->Count)
    {
      return;
    }
    const auto last = this->Items.begin() + static_cast<std::ptrdiff_t>(this->Count - 1);
    std::nth_element(this->Items.begin(), last, this->Items.end(), Precedes);
    this->Last = *last;
    this->HasWorst = true;
    this->Items.erase(last + 1, this->Items.end());
  }

  /// The best items in order, which are taken out.
  std::vector<Item> Take()
  {
    this->Shrink();
    std::sort(this->Items.begin(), this->Items.end(), Precedes);
    return std::move(this->Items);
  }

private:
  std::size_t Count;
  std::vector<Item> Items;
  Item Last = {};
  bool HasWorst = false;

  static bool Precedes(const Item& a, const Item& b) { return a.IsBefore(b); }
};

}
