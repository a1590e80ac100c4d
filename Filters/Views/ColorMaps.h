#pragma once

// Since 5.13, ParaView has a class of its own for the colors of representations.
#if __has_include(<vtkSMColorMapEditorHelper.h>)
#include <vtkSMColorMapEditorHelper.h>
using ColorMaps = vtkSMColorMapEditorHelper;
#else
#include <vtkSMPVRepresentationProxy.h>
using ColorMaps = vtkSMPVRepresentationProxy;
#endif
