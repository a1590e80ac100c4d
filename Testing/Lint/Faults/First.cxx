namespace
{

int ValueOf(const int* place)
{
  if (place != nullptr)
  {
    return 0;
  }
  return *place;
}

}

int First(const int* place)
{
  return ValueOf(place);
}
