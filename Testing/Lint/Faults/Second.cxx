int Second(int value)
{
  const int zero = value - value;
  if (value > 0)
  {
    return 1 / zero;
  }
  else
  {
    return zero;
  }
}
