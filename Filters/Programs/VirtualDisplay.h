#pragma once

namespace atlas::programs
{

/// Starts an X server that is seen on no screen, and sets the environment variables by which this
/// process and the programs that it becomes find it and are let in. The server chooses its number
/// and ends with this process. Returns false if Xvfb is not installed; throws OptionError if it
/// does not start.
bool StartVirtualDisplay();

}
