#pragma once

namespace atlas
{

/// Gives a class with a public function Fail, which throws, the function FailIf.
template<class Class>
class FailsIf
{
public:
  template<class... Parts>
  void FailIf(bool condition, const Parts&... message) const
  {
    if (condition)
    {
      static_cast<const Class&>(*this).Fail(message...);
    }
  }

private:
  FailsIf() = default;
  friend Class;
};

}
