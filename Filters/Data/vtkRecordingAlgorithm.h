#pragma once

#include "AttentionAtlasDataModule.h"
#include "vtkTaskAlgorithm.h"

#include <string>
#include <vector>

class vtkDataObject;
class vtkMultiBlockDataSet;

/**
 * @class vtkRecordingAlgorithm
 * @brief The base of filters that show one kind of attention of a recording, mostly their first
 * input.
 *
 * The recording of a transformer with an encoder and a decoder has three kinds, that of a model of
 * pictures among words two, without CROSS; others have one.
 */
class ATTENTIONATLASDATA_EXPORT vtkRecordingAlgorithm : public vtkTaskAlgorithm
{
public:
  vtkTypeMacro(vtkRecordingAlgorithm, vtkTaskAlgorithm);

  enum AttentionKindType
  {
    DECODER = 0,
    ENCODER = 1,
    CROSS = 2
  };

  /// The kind of attention of a transformer with an encoder and a decoder: of the target's tokens
  /// to each other (DECODER), of the source's tokens to each other (ENCODER), or of the target's to
  /// the source's (CROSS). Of a model of pictures among words DECODER is that of words and
  /// pictures, ENCODER that of patches in its encoder of images. Others have DECODER alone.
  /// Default: DECODER.
  vtkSetClampMacro(AttentionKind, int, DECODER, CROSS);
  vtkGetMacro(AttentionKind, int);

  /// Whether the recording, as far as it is known without an update, has several kinds of
  /// attention.
  int GetHasKinds();

  /// The first and last kind of attention that it has; all kinds if there is no recording.
  int* GetKindRange() VTK_SIZEHINT(2);

protected:
  using vtkTaskAlgorithm::vtkTaskAlgorithm;

  /// The input port of the recording: the first one, unless a filter says otherwise.
  virtual int RecordingPort() const { return 0; }

  /// The outline of the recording (OutlineOf in Execution.h): its part with the chosen kind of
  /// attention; nullptr if there is none, which RequirePart reports as an error. For
  /// RequestInformation.
  vtkMultiBlockDataSet* OutlineOfPart();

  /// The same without an update (KnownOutline).
  vtkMultiBlockDataSet* KnownPart();

  /// The part of the recording with the chosen kind of attention; an empty one as it is. Throws
  /// atlas::OptionError if there is none. For Execute.
  vtkMultiBlockDataSet* RequirePart(const AttentionAtlas::Task& task) const;

  /// Adds the field array Attention Kind (string: encoder, cross), which tells to which tokens the
  /// indices of an output belong. Outputs of DECODER have none.
  void AddKind(vtkDataObject* output) const;

  int AttentionKind = DECODER;

private:
  int KindRange[2] = { DECODER, CROSS };
};
