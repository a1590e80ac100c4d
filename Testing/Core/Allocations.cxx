#include "Allocations.h"

#include <atomic>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ATLAS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ATLAS_SANITIZED
#endif
#endif

#ifdef ATLAS_SANITIZED
// Of sanitizer/allocator_interface.h, which GCC's packages leave out.
extern "C" int __sanitizer_install_malloc_and_free_hooks(
  void (*onMalloc)(const volatile void*, std::size_t), void (*onFree)(const volatile void*));
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#else
#include <cerrno>

#include <malloc.h>
#endif

namespace
{

std::atomic<std::size_t> Count{ 0 };
std::atomic<std::size_t> Live{ 0 };
std::atomic<std::size_t> Peak{ 0 };

void RaisePeak(std::size_t bytes)
{
  std::size_t before = Peak;
  while (before < bytes && !Peak.compare_exchange_weak(before, bytes))
  {
  }
}

#ifdef ATLAS_SANITIZED

// A freed block has no size any more when its hook is called: sizes are the sanitizer's own.
void OnMalloc(const volatile void*, std::size_t)
{
  ++Count;
  Live = __sanitizer_get_current_allocated_bytes();
  RaisePeak(Live);
}

void OnFree(const volatile void*) {}

[[maybe_unused]] const int Installed =
  __sanitizer_install_malloc_and_free_hooks(&OnMalloc, &OnFree);

#else

void* Counted(void* memory)
{
  if (memory != nullptr)
  {
    ++Count;
    RaisePeak(Live += malloc_usable_size(memory));
  }
  return memory;
}

#endif

}

#ifndef ATLAS_SANITIZED

extern "C"
{
  // NOLINTBEGIN(*-reserved-identifier)
  void* __libc_malloc(std::size_t size);
  void* __libc_calloc(std::size_t count, std::size_t size);
  void* __libc_realloc(void* memory, std::size_t size);
  void* __libc_memalign(std::size_t alignment, std::size_t size);
  void __libc_free(void* memory);
  // NOLINTEND(*-reserved-identifier)

  void* malloc(std::size_t size)
  {
    return Counted(__libc_malloc(size));
  }
  void* calloc(std::size_t count, std::size_t size)
  {
    return Counted(__libc_calloc(count, size));
  }
  void* realloc(void* memory, std::size_t size)
  {
    const std::size_t before = memory == nullptr ? 0 : malloc_usable_size(memory);
    void* moved = __libc_realloc(memory, size);
    Live -= moved != nullptr || size == 0 ? before : 0;
    return Counted(moved);
  }
  void* memalign(std::size_t alignment, std::size_t size)
  {
    return Counted(__libc_memalign(alignment, size));
  }
  void* aligned_alloc(std::size_t alignment, std::size_t size)
  {
    return Counted(__libc_memalign(alignment, size));
  }
  int posix_memalign(void** memory, std::size_t alignment, std::size_t size)
  {
    *memory = Counted(__libc_memalign(alignment, size));
    return *memory == nullptr ? ENOMEM : 0;
  }
  void free(void* memory)
  {
    Live -= memory == nullptr ? 0 : malloc_usable_size(memory);
    __libc_free(memory);
  }
}

#endif

namespace atlas::test
{

std::size_t AllocationCount()
{
  return Count;
}

std::size_t AllocatedBytes()
{
#ifdef ATLAS_SANITIZED
  return __sanitizer_get_current_allocated_bytes();
#else
  return Live;
#endif
}

std::size_t PeakBytes()
{
  return Peak;
}

void StartPeak()
{
  Peak = AllocatedBytes();
}

}
