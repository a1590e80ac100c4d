#include <list>
#include <vector>

using std::list; // a list
using std::vector;

namespace Names = std;
using Text = const char*;
constexpr int Most[] = { 3 };
constexpr int Least = 1;

int Third(const vector<int>& values)
{
  return values.empty() ? Least : 0;
}
